"""The sampler is not quite the policy that is trained: weights that make up for it.

An engine rounds otherwise than the trainer, and may hold older weights. Its tokens are then drawn
from another distribution than the one the ratio of the loss begins from; weighting them by
``p_old / p_sampler`` corrects for that, and bounds keep the variance in check.
"""

from __future__ import annotations

from typing import Literal

import torch

from visenv.algorithm import Batch

from .ratio import bounded_exp

Correction = Literal["none", "token", "sequence", "geometric"]
Bounds = Literal["truncate", "mask"]


def importance(batch: Batch, correction: Correction) -> torch.Tensor:
    """Return ``p_old / p_sampler``, without gradient.

    Args:
        batch: 0 off its mask.
        correction: Of what: each ``"token"`` (biased, of little variance); the whole
            ``"sequence"``, the product over a segment's tokens (unbiased, of a variance that grows
            with length); or its ``"geometric"`` mean, which is free of length.

    Returns:
        float ``[segments, length]``, or ``[segments, 1]`` where a segment has one weight.
    """
    difference = (batch.old_logprobs - batch.sampling_logprobs).detach()
    if correction == "token":
        return bounded_exp(difference)
    total = difference.sum(-1, keepdim=True)
    if correction == "sequence":
        return bounded_exp(total)
    return bounded_exp(total / batch.mask.sum(-1, keepdim=True).clamp(min=1))


def bounded(weights: torch.Tensor, bounds: Bounds, low: float, high: float | None) -> torch.Tensor:
    """Return the weights, clamped to the bounds, or set to 0 outside them.

    Args:
        weights: Of any shape.
        bounds: ``"truncate"`` (TIS) brings them to the nearer bound, ``"mask"`` (MIS, IcePop) drops
            what they weigh.
        low: Least weight.
        high: Greatest weight, or None.

    Source: TIS: arXiv:2510.18927 and F. Yao et al., "Your efficient RL framework secretly brings
    you off-policy RL training" (2025); masks: IcePop (arXiv:2510.18855).
    """
    if bounds == "truncate":
        return weights.clamp(low, high)
    return torch.where(outside(weights, low, high), 0.0, weights)


def outside(weights: torch.Tensor, low: float, high: float | None) -> torch.Tensor:
    """Return which weights are out of bounds: bool, of the same shape."""
    return (weights < low) | (weights > (torch.inf if high is None else high))
