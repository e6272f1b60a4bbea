"""Tests the update: micro-batch sizes do not change the result, which equals plain PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.algos import toy
from tests.algos.runs import Sloped
from visenv.algos.policy_gradient import DAPO, GRPO, RLOO, DrGRPO
from visenv.algos.sft import SFT
from visenv.algos.trainer.backend import parameter_groups
from visenv.algos.trainer.config import OptimizationConfig
from visenv.algos.trainer.credit import StepData, credit
from visenv.algos.trainer.ddp import make_backend
from visenv.algos.trainer.distributed import DistributedContext
from visenv.algos.trainer.update import Updater
from visenv.errors import ConfigurationError
from visenv.rollout import Collector
from visenv.types import Sampling

pytestmark = pytest.mark.component("torch")


def _updater(
    policy: Any, algorithm: Any, optimization: OptimizationConfig, reference: Any = None
) -> Updater:
    processes = DistributedContext(timeout=60)
    backend = make_backend(policy, optimization, processes)
    return Updater(policy, algorithm, optimization, backend, processes, reference=reference)


def _played(policy: Any, algorithm: Any) -> StepData:
    collector = Collector(toy.Echo, policy, Sampling(max_tokens=3))
    return credit(algorithm, collector.groups(range(4), size=4))


def _updated(algorithm: Any, optimization: OptimizationConfig, reference: bool = False) -> Any:
    policy = toy.ToyPolicy()
    credited = _played(policy, algorithm)
    frozen = toy.ToyPolicy(seed=1).copy_frozen() if reference else None
    updater = _updater(policy, algorithm, optimization, frozen)
    metrics = updater.update(credited, optimization.learning_rate, np.random.default_rng(0))
    return policy, metrics


@pytest.mark.parametrize("kind", [GRPO, DAPO])  # means over episodes and over tokens
def test_micro_batches_change_neither_gradient_nor_metrics(kind: Any) -> None:
    algorithm = kind(kl_coef=0.1)
    whole, metrics = _updated(algorithm, OptimizationConfig(tokens_per_batch=10**6), reference=True)
    parts, shares = _updated(algorithm, OptimizationConfig(tokens_per_batch=16), reference=True)
    assert len(whole.scored) == 1
    assert len(parts.scored) > 4
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-7)
    assert shares == pytest.approx(metrics, abs=1e-6)


@pytest.mark.parametrize("kind", [GRPO, DAPO, DrGRPO, RLOO])
def test_episode_has_the_same_weight_in_one_segment_and_in_several(kind: Any) -> None:
    """Check that only some episodes in several segments leave the gradient as it is."""
    gradients = []
    for chosen in (0, 2):
        policy = toy.ToyPolicy()
        collector = Collector(toy.Echo, policy, Sampling(max_tokens=3))
        groups = [
            [toy.divided(each) if each.member < chosen else each for each in group]
            for group in collector.groups(range(4), size=4)
        ]
        updater = _updater(policy, kind(), OptimizationConfig(max_grad_norm=1e9))
        updater.update(credit(kind(), groups), 0.1, np.random.default_rng(0))
        gradients.append([each.grad for each in policy.parameters()])
    for one, other in zip(*gradients, strict=True):
        largest = one.abs().max()
        assert largest > 0
        torch.testing.assert_close(one / largest, other / largest, rtol=1e-4, atol=1e-5)


def test_update_is_that_of_adamw() -> None:
    policy, twin = toy.ToyPolicy(), toy.ToyPolicy()
    episodes = [policy.encode(toy.demonstration(*pair)) for pair in ("ab", "cd", "aa")]
    optimization = OptimizationConfig(learning_rate=0.1, weight_decay=0.5, max_grad_norm=0.01)
    credited = credit(SFT(), [[episode] for episode in episodes])
    updater = _updater(policy, SFT(), optimization)
    metrics = updater.update(credited, 0.1, np.random.default_rng(0))

    weight, bias = twin.parameters()
    segments = [episode.segments[0] for episode in episodes]
    images = {image.sha256: image for episode in episodes for image in episode.images}
    loss = -twin.score(segments, images).logprobs.sum() / 12  # 3 episodes of 2 turns of 2 tokens
    loss.backward()
    assert metrics["loss"] == pytest.approx(float(loss.detach()), abs=1e-6)
    assert weight.grad is not None
    assert bias.grad is not None
    norm = torch.cat([weight.grad.flatten(), bias.grad]).norm()
    assert metrics["grad_norm"] == pytest.approx(float(norm), abs=1e-6)
    weight.grad *= 0.01 / norm
    bias.grad *= 0.01 / norm
    torch.optim.AdamW([weight], 0.1, (0.9, 0.98), weight_decay=0.5).step()
    torch.optim.AdamW([bias], 0.1, (0.9, 0.98), weight_decay=0.0).step()
    for one, other in zip(policy.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_matrices_decay_and_vectors_do_not_also_where_deepspeed_holds_them_in_shards() -> None:
    policy: Any = toy.ToyPolicy()
    weight, bias = policy.parameters()
    whole = parameter_groups(policy, OptimizationConfig(weight_decay=0.5))
    for each in (weight, bias):
        each.ds_shape, each.data = each.shape, torch.empty(0)
    for groups in (whole, parameter_groups(policy, OptimizationConfig(weight_decay=0.5))):
        assert [group["weight_decay"] for group in groups] == [0.5, 0.0]
        assert [list(map(id, group["params"])) for group in groups] == [[id(weight)], [id(bias)]]


def test_passes_and_minibatches_use_every_segment_equally() -> None:
    policy, metrics = _updated(Sloped(), OptimizationConfig(0.05, num_epochs=2, num_minibatches=2))
    assert policy.version == 4
    assert policy.scored == [8, 8, 8, 8]
    assert abs(metrics["ratio"] - 1) > 1e-4  # the first optimizer step changed the policy


def test_tokens_without_log_probabilities_serve_one_step_only() -> None:
    policy = toy.ToyPolicy()
    credited = credit(GRPO(), [[policy.encode(toy.demonstration("a", "b"))] * 2])
    for optimization in (OptimizationConfig(num_epochs=2), OptimizationConfig(num_minibatches=2)):
        updater = _updater(policy, GRPO(), optimization)
        with pytest.raises(ConfigurationError, match="set num_epochs and num_minibatches to 1"):
            updater.update(credited, 0.1, np.random.default_rng(0))
    updater = _updater(policy, GRPO(), OptimizationConfig())
    assert updater.update(credited, 0.1, np.random.default_rng(0))["ratio"] == 1.0


def test_effective_sample_is_what_is_left_of_it_after_weighting() -> None:
    optimization = OptimizationConfig(old_logprobs="trainer", num_minibatches=2)
    policy = toy.ToyPolicy()
    algorithm = GRPO(correction="token")
    credited = _played(policy, algorithm)
    for each in credited.own:  # like a sampler with other rounding
        each.segment.logprobs[::2] -= 0.5
    updater = _updater(policy, algorithm, optimization)
    metrics = updater.update(credited, 0.1, np.random.default_rng(0))
    # Weights are exp(0.5) or 1, and both occur: mean(w)^2 < mean(w^2).
    assert metrics["importance"] > 1
    effective = metrics["importance"] ** 2 / metrics["importance_square"]
    assert metrics["importance_effective"] == effective < 0.999
    _, plain = _updated(GRPO(), OptimizationConfig())
    assert "importance_effective" not in plain
