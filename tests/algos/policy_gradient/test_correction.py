"""Tests importance weights between sampler and trainer against hand-worked values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from visenv.algos.policy_gradient import GRPO
from visenv.algos.policy_gradient.base import on_mask
from visenv.algos.policy_gradient.token_loss import bounded, importance, outside


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        # old - sampler: log 2, 0 | -2 log 2 for the only token of the second segment
        ("token", [[2.0, 1.0], [0.25, 1.0]]),
        ("sequence", [[2.0], [0.25]]),
        ("geometric", [[2**0.5], [0.25]]),  # log 2 / 2 tokens
    ],
)
def test_importance_by_hand(hand_batch: Any, correction: Any, expected: list[float]) -> None:
    hand_batch.old_logprobs.requires_grad_()
    weights = importance(on_mask(hand_batch), correction)
    torch.testing.assert_close(weights, torch.tensor(expected))
    assert not weights.requires_grad


def test_bounds_by_hand() -> None:
    weights = torch.tensor([0.1, 0.5, 1.0, 2.0, 9.0])
    assert bounded(weights, "truncate", 0.5, 2.0).tolist() == [0.5, 0.5, 1.0, 2.0, 2.0]
    assert bounded(weights, "mask", 0.5, 2.0).tolist() == [0.0, 0.5, 1.0, 2.0, 0.0]
    assert outside(weights, 0.5, 2.0).tolist() == [True, False, False, False, True]
    assert bounded(weights, "truncate", 0.5, None).tolist() == [0.5, 0.5, 1.0, 2.0, 9.0]
    assert bounded(weights, "mask", 0.5, None).tolist() == [0.0, 0.5, 1.0, 2.0, 9.0]


def test_corrected_step_by_hand(hand_batch: Any) -> None:
    # GRPO's losses are -1, -1.28 | .8; the weights are 2, 1 | 1/4, of which 2 is clipped to 1.5:
    # (-1.5 - 1.28) / 2 = -1.39, .8 / 4 = .2; their mean is -.595
    loss = GRPO(correction="token", correction_high=1.5).loss(hand_batch)
    assert float(loss.value) == pytest.approx(-0.595)
    expected = {
        "mismatch": 0.6931472,  # (log 2 + 0 + 2 log 2) / 3
        "importance": (2 + 1 + 0.25) / 3,
        "importance_square": (4 + 1 + 0.0625) / 3,
        "importance_outside": 1 / 3,
    }
    assert {name: loss.metrics[name] for name in expected} == pytest.approx(expected)
    # masked, the first token has weight 0: -1.28 / 2 = -.64; (-.64 + .2) / 2 = -.22
    masked = GRPO(correction="token", correction_high=1.5, correction_bounds="mask")
    assert float(masked.loss(hand_batch).value) == pytest.approx(-0.22)


def test_divergence_is_not_corrected(hand_batch: Any) -> None:
    plain = GRPO(correction="sequence", correction_bounds="mask", correction_low=3.0)
    assert float(plain.loss(hand_batch).value) == 0.0  # both weights are below 3
    with_reference = GRPO(
        correction="sequence", correction_bounds="mask", correction_low=3.0, kl_coef=0.1
    )
    # k3 of a reference twice as likely is 2 - log 2 - 1 = .3068528, for one of two tokens of the
    # first segment
    expected = 0.1 * 0.3068528 / 2 / 2
    assert float(with_reference.loss(hand_batch).value) == pytest.approx(expected, abs=1e-7)


def test_correction_without_a_mismatch_changes_nothing(random_batch: Any) -> None:
    batch = random_batch(0)
    alike = replace(batch, sampling_logprobs=batch.old_logprobs)
    for correction in ("token", "sequence", "geometric"):
        loss = GRPO(correction=correction).loss(alike)
        assert float(loss.value) == float(GRPO().loss(batch).value)
        assert loss.metrics["importance"] == pytest.approx(1.0)
        assert loss.metrics["mismatch"] == 0.0
