"""The update: how it is cut must not matter, and what it does is what torch does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from visenv.algos.grpo import GRPO
from visenv.algos.sft import SFT
from visenv.algos.trainer.config import Optimisation
from visenv.algos.trainer.credit import Credited, credit
from visenv.algos.trainer.update import Updater, cut, make_optimizer
from visenv.errors import ConfigurationError
from visenv.rollout import Collector
from visenv.types import Sampling

pytestmark = pytest.mark.component("torch")


def _played(toy: Any, policy: Any, groups: int = 4) -> list[Credited]:
    collector = Collector(toy.Echo, policy, Sampling(max_tokens=3))
    return credit(GRPO(), collector.groups(range(groups), size=4))


def _updated(toy: Any, algorithm: Any, optimisation: Optimisation, reference: bool = False) -> Any:
    policy = toy.ToyPolicy()
    credited = _played(toy, policy)
    frozen = toy.ToyPolicy(seed=1).copy_frozen() if reference else None
    updater = Updater(policy, algorithm, optimisation, make_optimizer(policy, optimisation), frozen)
    metrics = updater.update(credited, optimisation.learning_rate, np.random.default_rng(0))
    return policy, metrics


@pytest.mark.parametrize("normalisation", ["token", "sequence"])
def test_micro_batches_change_neither_gradient_nor_metrics(toy: Any, normalisation: Any) -> None:
    algorithm = GRPO(kl_weight=0.1, normalisation=normalisation)
    whole, metrics = _updated(toy, algorithm, Optimisation(tokens_per_batch=10**6), reference=True)
    parts, shares = _updated(toy, algorithm, Optimisation(tokens_per_batch=16), reference=True)
    assert len(whole.scored) == 1
    assert len(parts.scored) > 4
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-7)
    assert shares == pytest.approx(metrics, abs=1e-6)


def test_it_is_what_adamw_does(toy: Any) -> None:
    policy, twin = toy.ToyPolicy(), toy.ToyPolicy()
    episodes = [policy.encode(toy.demonstration(*pair)) for pair in ("ab", "cd", "aa")]
    optimisation = Optimisation(learning_rate=0.1, weight_decay=0.5, max_grad_norm=0.01)
    credited = credit(SFT(), [[episode] for episode in episodes])
    updater = Updater(policy, SFT(), optimisation, make_optimizer(policy, optimisation))
    metrics = updater.update(credited, 0.1, np.random.default_rng(0))

    weight, bias = twin.parameters()
    segments = [episode.segments[0] for episode in episodes]
    images = {image.sha256: image for episode in episodes for image in episode.images}
    loss = -twin.score(segments, images).logprobs.sum() / 12  # 3 episodes of 2 turns of 2 tokens
    loss.backward()
    assert metrics["loss"] == pytest.approx(float(loss.detach()), abs=1e-6)
    norm = torch.cat([weight.grad.flatten(), bias.grad]).norm()
    assert metrics["grad_norm"] == pytest.approx(float(norm), abs=1e-6)
    for each in (weight, bias):
        each.grad *= 0.01 / norm
    torch.optim.AdamW([weight], 0.1, (0.9, 0.98), weight_decay=0.5).step()
    torch.optim.AdamW([bias], 0.1, (0.9, 0.98), weight_decay=0.0).step()
    for one, other in zip(policy.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_passes_and_minibatches_use_every_segment_equally(toy: Any) -> None:
    policy, metrics = _updated(toy, GRPO(), Optimisation(0.05, passes=2, minibatches=2))
    assert policy.version == 4
    assert policy.scored == [8, 8, 8, 8]
    assert abs(metrics["ratio"] - 1) > 1e-4  # from the second step on the policy has moved


def test_tokens_without_log_probabilities_serve_one_step_only(toy: Any) -> None:
    policy = toy.ToyPolicy()
    credited = credit(GRPO(), [[policy.encode(toy.demonstration("a", "b"))] * 2])
    for optimisation in (Optimisation(passes=2), Optimisation(minibatches=2)):
        updater = Updater(policy, GRPO(), optimisation, make_optimizer(policy, optimisation))
        with pytest.raises(ConfigurationError, match="set passes and minibatches to 1"):
            updater.update(credited, 0.1, np.random.default_rng(0))
    once = Optimisation()
    updater = Updater(policy, GRPO(), once, make_optimizer(policy, once))
    assert updater.update(credited, 0.1, np.random.default_rng(0))["ratio"] == 1.0


@given(st.lists(st.integers(1, 30), max_size=20), st.integers(1, 100))
def test_micro_batches_hold_every_segment_once_within_the_budget(
    lengths: list[int], tokens: int
) -> None:
    given_segments: Any = [_OfLength(length) for length in lengths]
    parts = list(cut(given_segments, tokens))
    held = [id(each) for part in parts for each in part]
    assert sorted(held) == sorted(map(id, given_segments))
    for part in parts:
        longest = max(len(each.segment) for each in part)
        assert len(part) == 1 or longest * len(part) <= tokens


class _OfLength:
    def __init__(self, length: int) -> None:
        self.segment = range(length)
