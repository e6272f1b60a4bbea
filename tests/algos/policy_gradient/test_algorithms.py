"""Tests each algorithm against hand-worked values, and the properties that all algorithms share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from visenv.algorithm import Algorithm
from visenv.algos.policy_gradient import (
    BNPO,
    CISPO,
    DAPO,
    GRPO,
    GSPO,
    RLOO,
    DrGRPO,
    ReinforcePlusPlus,
)
from visenv.algos.policy_gradient.token_loss import ESTIMATORS
from visenv.errors import ConfigurationError
from visenv.registration import ALGORITHMS, load

ALL = [BNPO, CISPO, DAPO, DrGRPO, GRPO, GSPO, RLOO, ReinforcePlusPlus]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"kl_coef": 0.1},
    {"kl_coef": 0.1, "kl_estimator": "k2", "kl_ratio": True},
    {"correction": "token", "correction_high": 1.2},
    {"correction": "sequence", "correction_bounds": "mask", "correction_low": 0.5},
    {"correction": "geometric"},
]


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        # ratios 1, 2 | 1/2, advantages 1, 1 | -1. Clipped to [.8, 1.28], the losses are -1, -1.28 |
        # .8; clipped to [.8, 1.2], they are -1, -1.2 | .8
        (GRPO(), (-2.28 / 2 + 0.8) / 2),
        (DrGRPO(max_tokens=4), (-2.2 / 4 + 0.8 / 4) / 2),
        (DAPO(), (-2.28 + 0.8) / 3),
        (BNPO(), (-2.2 + 0.8) / 3),
        # sequence ratios √2 | 1/2 are clipped to 1.28 | .8
        (GSPO(clip_low=0.2, clip_high=0.28), (-1.28 + 0.8) / 2),
        # weights 1, 1.5 (2, clipped) | .5 times -A log p, with log p = -1: 1 + 1.5 - .5
        (CISPO(max_ratio=1.5), 2.0 / 3),
        (CISPO(min_ratio=0.8, max_ratio=1.5), (1 + 1.5 - 0.8) / 3),
        (RLOO(), (-2.2 + 0.8) / 2),
        (ReinforcePlusPlus(), (-2.2 + 0.8) / 3),
    ],
)
def test_loss_by_hand(hand_batch: Any, algorithm: Any, expected: float) -> None:
    loss = algorithm.loss(hand_batch)
    assert float(loss.value) == pytest.approx(expected, abs=1e-7)
    assert loss.metrics["clip_high"] == pytest.approx((2 if type(algorithm) is GSPO else 1) / 3)
    assert loss.metrics["entropy"] == pytest.approx(1.0)  # (.5 + 1 + 1.5) / 3


def test_metrics_by_hand(hand_batch: Any) -> None:
    loss = DAPO(kl_coef=0.1, clip_dual=2.0).loss(hand_batch)
    # k3 is 0, 2 - log 2 - 1 = .3068528 | 0; times 0.1 it is .03068528: (-1.48 + .03068528) / 3
    assert float(loss.value) == pytest.approx(-0.4831049, abs=1e-6)
    assert loss.metrics == pytest.approx(
        {
            "clip_low": 1 / 3,
            "clip_high": 1 / 3,
            "clip_dual": 0.0,
            "ratio": 3.5 / 3,
            "entropy": 1.0,
            "mismatch": 0.6931472,  # (log 2 + 0 + 2 log 2) / 3
            "kl": 0.3068528 / 3,
        },
        abs=1e-6,
    )


def test_ratio_weights_the_divergence(hand_batch: Any) -> None:
    # the token with ratio 2 is the only one with a nonzero KL: .3068528 becomes .6137056
    loss = DAPO(kl_coef=0.1, kl_ratio=True).loss(hand_batch)
    assert float(loss.value) == pytest.approx((-1.48 + 0.06137056) / 3, abs=1e-6)
    assert loss.metrics["kl"] == pytest.approx(0.6137056 / 3, abs=1e-6)


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_weighted_by_the_ratio_estimators_have_the_divergence_s_gradient(estimator: Any) -> None:
    # The sum over all tokens of a vocabulary of three, weighted by probability, is an expectation.
    logits = torch.tensor([0.3, -0.5, 0.1], dtype=torch.float64, requires_grad=True)
    reference = torch.log_softmax(torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64), -1)
    logprobs = torch.log_softmax(logits, -1)
    true = (logprobs.exp() * (logprobs - reference)).sum()
    (expected,) = torch.autograd.grad(true, logits, retain_graph=True)
    old = logprobs.detach()
    estimate = (logprobs - old).exp() * ESTIMATORS[estimator](logprobs, reference)
    (given,) = torch.autograd.grad((old.exp() * estimate).sum(), logits)
    torch.testing.assert_close(given, expected)


def _weights(algorithm: Any, batch: Any) -> torch.Tensor:
    """Return the weight of each token in the loss, by the formula of the algorithm's docstring."""
    tokens, episodes = batch.total_tokens, batch.total_episodes
    by_episode = 1 / batch.episode_tokens[:, None].double() / episodes
    weights: dict[type, Any] = {
        GRPO: by_episode,
        GSPO: by_episode,
        DrGRPO: 1 / 512 / episodes,
        RLOO: 1 / episodes,
    }
    weight = weights.get(type(algorithm), 1 / tokens)
    mask: torch.Tensor = batch.mask
    return mask * torch.as_tensor(weight, dtype=torch.float64)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_on_policy_is_that_of_reinforce(random_batch: Any, kind: Any, seed: int) -> None:
    batch = random_batch(seed)
    batch = replace(batch, old_logprobs=batch.logprobs.clone())
    if kind is GSPO:  # one advantage per sequence, so that GSPO averages nothing
        batch = replace(batch, advantages=batch.advantages[:, :1].expand(-1, 7))
    batch.logprobs.requires_grad_()
    algorithm = kind()
    algorithm.loss(batch).value.backward()
    expected = -batch.advantages * _weights(algorithm, batch)
    torch.testing.assert_close(batch.logprobs.grad, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("options", OPTIONS)
def test_losses_of_micro_batches_add_up_to_the_loss_of_the_step(
    random_batch: Any, take_rows: Any, kind: Any, options: dict[str, Any]
) -> None:
    algorithm, batch = kind(**options), random_batch(1)
    whole = algorithm.loss(batch)
    cuts = (slice(0, 2), slice(2, 3), slice(3, 5))
    parts = [algorithm.loss(take_rows(batch, cut)) for cut in cuts]
    assert float(sum(part.value for part in parts)) == pytest.approx(float(whole.value), abs=1e-12)
    for name, value in whole.metrics.items():
        assert sum(part.metrics[name] for part in parts) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("options", OPTIONS)
def test_order_and_padding_do_not_matter(
    random_batch: Any, take_rows: Any, kind: Any, options: dict[str, Any]
) -> None:
    algorithm, batch = kind(**options), random_batch(2)
    mixed = take_rows(batch, torch.tensor([3, 0, 4, 1, 2]))
    names = ("logprobs", "old_logprobs", "sampling_logprobs", "reference_logprobs", "entropy")
    padded = {
        name: torch.nn.functional.pad(getattr(mixed, name), (0, 3), value=torch.nan)
        for name in (*names, "advantages")
    }
    mask = torch.nn.functional.pad(mixed.mask, (0, 3))
    other = algorithm.loss(replace(mixed, **padded, mask=mask))
    expected = algorithm.loss(batch)
    assert float(other.value) == pytest.approx(float(expected.value), abs=1e-12)
    assert other.metrics == pytest.approx(expected.metrics, abs=1e-12)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("options", OPTIONS)
def test_values_off_the_mask_do_not_matter(
    random_batch: Any, kind: Any, options: dict[str, Any]
) -> None:
    algorithm, batch, rubbish = kind(**options), random_batch(0), random_batch(0)
    for name in ("logprobs", "old_logprobs", "sampling_logprobs", "reference_logprobs", "entropy"):
        getattr(rubbish, name)[~rubbish.mask] = torch.nan
    rubbish.advantages[~rubbish.mask] = torch.inf
    rubbish.logprobs.requires_grad_()
    loss = algorithm.loss(rubbish)
    assert float(loss.value.detach()) == float(algorithm.loss(batch).value)
    loss.value.backward()
    assert (rubbish.logprobs.grad[~rubbish.mask] == 0).all()
    assert rubbish.logprobs.grad.isfinite().all()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("options", OPTIONS)
def test_micro_batch_of_padding_keeps_its_graph_and_adds_nothing(
    random_batch: Any, kind: Any, options: dict[str, Any]
) -> None:
    batch = random_batch(0)
    batch = replace(batch, mask=torch.zeros_like(batch.mask))
    batch.logprobs.requires_grad_()
    loss = kind(**options).loss(batch)
    loss.value.backward()
    assert float(loss.value.detach()) == 0.0
    assert (batch.logprobs.grad == 0).all()
    assert set(loss.metrics.values()) == {0.0}


@pytest.mark.parametrize("kind", ALL)
def test_zero_advantage_has_no_gradient(random_batch: Any, kind: Any) -> None:
    batch = random_batch(0)
    batch = replace(batch, advantages=torch.zeros_like(batch.advantages))
    batch.logprobs.requires_grad_()
    kind().loss(batch).value.backward()
    assert (batch.logprobs.grad == 0).all()


@pytest.mark.parametrize("kind", ALL)
def test_tokens_that_became_impossible_or_certain_stay_finite(random_batch: Any, kind: Any) -> None:
    batch = random_batch(0, torch.float32)
    batch.old_logprobs[0] = -400.0
    batch.logprobs[1] = -400.0
    batch.sampling_logprobs[2] = -400.0
    batch.logprobs.requires_grad_()
    loss = kind(correction="sequence", correction_high=None, kl_coef=0.0).loss(batch)
    loss.value.backward()
    assert batch.logprobs.grad.isfinite().all()
    assert np.isfinite(list(loss.metrics.values())).all()


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        # rewards 1, 0, 0 | 5, 5: means 1/3 and 5
        (GRPO(scale="none"), [2 / 3, -1 / 3, -1 / 3, 0, 0]),
        (DrGRPO(), [2 / 3, -1 / 3, -1 / 3, 0, 0]),
        # sample variance (4 + 1 + 1) / 9 / 2 = 1/3: 2/3 / (.5773503 + .0001) = 1.1545006
        (GRPO(), [1.1545006, -0.5772503, -0.5772503, 0, 0]),
        (GSPO(), [1.1545006, -0.5772503, -0.5772503, 0, 0]),
        (RLOO(), [1, -0.5, -0.5, 0, 0]),
        # one token each: mean 2.2; squares 1.44 + 2 · 4.84 + 2 · 7.84 = 26.8, / 4 = 6.7,
        # std 2.5884358, which divides -1.2, -2.2 and 2.8
        (ReinforcePlusPlus(), [-0.4636004, -0.8499341, -0.8499341, 1.0817344, 1.0817344]),
        # minus group means: 2/3, -1/3, -1/3, 0, 0; variance 6/9 / 4 = 1/6, std .4082483
        (ReinforcePlusPlus(baseline="group"), [1.6329931, -0.8164965, -0.8164965, 0, 0]),
    ],
)
def test_advantages_by_hand(make_episode: Any, algorithm: Any, expected: list[float]) -> None:
    first = [make_episode([reward], tokens=[1]) for reward in (1.0, 0.0, 0.0)]
    second = [make_episode([5.0], tokens=[1])] * 2
    given = algorithm.advantages([first, second])
    assert [len(group) for group in given] == [3, 2]
    flat = [np.asarray(each).item() for group in given for each in group]
    assert flat == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ALL)
def test_groups_without_episodes_and_steps_without_groups(make_episode: Any, kind: Any) -> None:
    assert kind().advantages([]) == []
    assert kind().advantages([[], []]) == [[], []]
    ((alone,),) = kind().advantages([[make_episode([1.0, 2.0])]])  # without segments, too
    assert not np.asarray(alone).any()


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        (GRPO, {"clip_low": 1.5}, r"clip_low must lie between 0.0 and 1.0, got 1.5"),
        (GSPO, {"clip_high": -0.1}, "clip_high must lie between 0.0 and inf"),
        (DAPO, {"clip_dual": 1.1}, "clip_dual must be at least 1 . clip_high, got 1.1 and 1.28"),
        (GRPO, {"kl_coef": float("nan")}, "kl_coef must lie between 0"),
        (GRPO, {"kl_coef": float("inf")}, "kl_coef must lie between 0"),
        (GRPO, {"kl_coef": None}, "kl_coef must lie between 0"),
        (GRPO, {"kl_coef": "much"}, "kl_coef must lie between 0.0 and inf, got 'much'"),
        (GRPO, {"scale": "std"}, r"scale is one of \('group', 'batch', 'none'\), got 'std'"),
        (GRPO, {"credit": "token"}, r"credit is one of \('episode', 'turn', 'state'\)"),
        (GRPO, {"discount": 1.1}, "discount must lie between 0.0 and 1.0"),
        (GRPO, {"state_weight": -1.0}, "state_weight must lie between 0.0"),
        (RLOO, {"kl_estimator": "k4"}, r"kl_estimator is one of \('k1', 'k2', 'k3'\)"),
        (
            CISPO,
            {"correction": "tis"},
            r"correction is one of \('none', 'token', 'sequence', 'geometric'\)",
        ),
        (
            CISPO,
            {"correction_bounds": "clip"},
            r"correction_bounds is one of \('truncate', 'mask'\)",
        ),
        (BNPO, {"correction_low": 4.0}, "correction_high must be at least correction_low"),
        (CISPO, {"max_ratio": 0.5}, "max_ratio must lie between 1.0"),
        (CISPO, {"min_ratio": 2.0}, "min_ratio must lie between 0.0 and 1.0"),
        (DrGRPO, {"max_tokens": 0}, "max_tokens must lie between 1"),
        (
            DAPO,
            {"overlong_limit": 50},
            "overlong_limit must be at least overlong_buffer, got 50 and",
        ),
        (DAPO, {"overlong_buffer": 0}, "overlong_buffer must lie between 1"),
        (DAPO, {"overlong_penalty": -1.0}, "overlong_penalty must lie between 0.0"),
        (ReinforcePlusPlus, {"baseline": "mean"}, r"baseline is one of \('none', 'group'\)"),
    ],
)
def test_settings_that_are_invalid_list_the_allowed_ones(
    kind: Any, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        kind(**settings)


@pytest.mark.parametrize("kind", ALL)
def test_reference_is_asked_for_only_with_a_weight(hand_batch: Any, kind: Any) -> None:
    assert not kind().needs_reference
    assert kind(kl_coef=0.01).needs_reference
    with pytest.raises(ConfigurationError, match="no reference_logprobs"):
        kind(kl_coef=0.01).loss(replace(hand_batch, reference_logprobs=None))


def test_algorithms_are_all_registered() -> None:
    loaded = [load("algorithm", name) for name in ALGORITHMS]
    assert set(ALL) <= set(loaded)
    assert all(issubclass(each, Algorithm) for each in loaded)
