"""Tests the three KL estimators against hand-worked values, and their known properties."""

from __future__ import annotations

import math

import pytest
import torch

from visenv.algos.policy_gradient.token_loss import ESTIMATORS, k1, k2, k3

LOGPROBS = torch.tensor([math.log(0.5), math.log(0.2), math.log(0.3)], dtype=torch.float64)
REFERENCE = torch.tensor([math.log(0.25), math.log(0.4), math.log(0.3)], dtype=torch.float64)


def test_estimators_by_hand() -> None:
    # log(p/q) = log 2, -log 2, 0, and log 2 = .69314718
    assert k1(LOGPROBS, REFERENCE).tolist() == pytest.approx([0.69314718, -0.69314718, 0])
    # .69314718² / 2 = .24022651
    assert k2(LOGPROBS, REFERENCE).tolist() == pytest.approx([0.24022651, 0.24022651, 0])
    # q/p - log(q/p) - 1: .5 + .69314718 - 1; 2 - .69314718 - 1; 1 - 0 - 1
    assert k3(LOGPROBS, REFERENCE).tolist() == pytest.approx([0.19314718, 0.30685282, 0])


@pytest.mark.parametrize("name", ["k1", "k3"])
def test_unbiased_ones_give_the_true_divergence_in_expectation(name: str) -> None:
    p = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    q = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    true = float((p * (p / q).log()).sum())
    estimate = ESTIMATORS[name](p.log(), q.log())  # type: ignore[index]
    assert float((p * estimate).sum()) == pytest.approx(true, abs=1e-12)


def test_tiny_differences_keep_their_digits() -> None:
    # k3 ≈ d²/2 for a small d; exp(d) - 1 - d computed plainly in float32 gives 0 or worse
    given, reference = torch.tensor([0.0]), torch.tensor([1e-4])
    assert float(k3(given, reference)) == pytest.approx(5e-9, rel=0.05)
