"""Tests ratios and clipping against hand-worked values."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from visenv.algos.policy_gradient.base import on_mask
from visenv.algos.policy_gradient.token_loss import (
    bounded_exp,
    clipped,
    sequence_ratio,
    token_ratio,
)


def test_clip_by_hand() -> None:
    # low .2, high .28: the ratio is clipped to [.8, 1.28]
    ratio = torch.tensor([1.0, 1.5, 0.5, 1.5, 0.5, 1.25])
    advantages = torch.tensor([2.0, 2.0, 2.0, -2.0, -2.0, 2.0])
    values, watched = clipped(ratio, advantages, 0.2, 0.28)
    # unclipped and clipped: 2 2, 3 2.56, 1 1.6, -3 -2.56, -1 -1.6, 2.5 2.5; the result is minus the
    # smaller one
    assert values.tolist() == pytest.approx([-2.0, -2.56, -1.0, 3.0, 1.6, -2.5])
    assert watched["clip_low"].tolist() == [False, False, False, False, True, False]
    assert watched["clip_high"].tolist() == [False, True, False, False, False, False]
    assert watched.keys() == {"clip_low", "clip_high", "ratio"}


def test_dual_clip_by_hand() -> None:
    ratio = torch.tensor([1.5, 4.0, 4.0, 0.5], requires_grad=True)
    advantages = torch.tensor([-2.0, -2.0, 2.0, -2.0])
    values, watched = clipped(ratio, advantages, 0.2, 0.28, dual=3.0)
    # 3 as before; ratio 4 is capped at 3: -min(3 · -2, 1.28 · -2) = 6; the last two are clipped as
    # before
    assert values.tolist() == pytest.approx([3.0, 6.0, -2.56, 1.6])
    assert watched["clip_dual"].tolist() == [False, True, False, False]
    values.sum().backward()
    assert ratio.grad is not None
    assert ratio.grad.tolist() == [2.0, 0.0, 0.0, 0.0]


def test_clipped_token_has_no_gradient() -> None:
    ratio = torch.tensor([1.5, 0.5, 1.2], requires_grad=True)
    values, _ = clipped(ratio, torch.tensor([1.0, -1.0, 1.0]), 0.2, 0.28)
    values.sum().backward()
    assert ratio.grad is not None
    assert ratio.grad.tolist() == [0.0, 0.0, -1.0]


def test_ratios_by_hand(hand_batch: Any) -> None:
    batch = on_mask(hand_batch)
    assert token_ratio(batch)[batch.mask].tolist() == pytest.approx([1.0, 2.0, 0.5])
    # (1 · 2)^(1/2) = 1.4142136 for both tokens of the first segment, 1/2 for the second
    root = math.sqrt(2)
    assert sequence_ratio(batch)[batch.mask].tolist() == pytest.approx([root, root, 0.5])


def test_tokens_of_a_sequence_ratio_have_their_own_gradients(hand_batch: Any) -> None:
    batch = on_mask(hand_batch)
    batch.logprobs.requires_grad_()
    sequence_ratio(batch)[0, 1].backward()
    assert batch.logprobs.grad is not None
    assert batch.logprobs.grad[0].tolist() == pytest.approx([0.0, math.sqrt(2)])


def test_ratio_is_never_infinite() -> None:
    given = torch.tensor([500.0, -500.0, 19.0], requires_grad=True)
    ratio = bounded_exp(given)
    assert ratio.tolist() == pytest.approx([math.exp(20), math.exp(-20), math.exp(19)])
    ratio.sum().backward()
    assert given.grad is not None
    assert given.grad.tolist() == pytest.approx([0.0, 0.0, math.exp(19)])
