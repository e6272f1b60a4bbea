"""Computes importance weights that correct for the difference between sampler and trainer.

An engine rounds differently than the trainer, and may hold older weights. Its tokens are therefore
drawn from a different distribution than p_old in the ratio of the loss. The weight
``p_old / p_sampler`` corrects for this difference, and bounds of the weight limit the variance.
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
        batch: A batch whose values are 0 outside its mask.
        correction: The kind of weight. ``"token"``: the ratio of each token (biased, small
            variance). ``"sequence"``: the product over the tokens of a segment (unbiased; the
            variance grows with the length). ``"geometric"``: the geometric mean over the tokens of
            a segment, whose scale does not depend on the length.

    Returns:
        float ``[segments, length]``, or ``[segments, 1]`` if a segment has one weight.
    """
    difference = (batch.old_logprobs - batch.sampling_logprobs).detach()
    if correction == "token":
        return bounded_exp(difference)
    total = difference.sum(-1, keepdim=True)
    if correction == "sequence":
        return bounded_exp(total)
    return bounded_exp(total / batch.mask.sum(-1, keepdim=True).clamp(min=1))


def bounded(weights: torch.Tensor, bounds: Bounds, low: float, high: float | None) -> torch.Tensor:
    """Return the weights, clipped to the bounds or set to 0 outside the bounds.

    Args:
        weights: The weights, of any shape.
        bounds: ``"truncate"`` (TIS) clips the weights to the bounds; ``"mask"`` (MIS, IcePop) sets
            weights outside the bounds to 0.
        low: The lower bound.
        high: The upper bound, or None.

    Source: TIS: arXiv:2510.18927 and F. Yao et al., "Your efficient RL framework secretly brings
    you off-policy RL training" (2025); masks: IcePop (arXiv:2510.18855).
    """
    if bounds == "truncate":
        return weights.clamp(low, high)
    return torch.where(outside(weights, low, high), 0.0, weights)


def outside(weights: torch.Tensor, low: float, high: float | None) -> torch.Tensor:
    """Return a mask of the weights that are out of bounds: bool, of the same shape."""
    return (weights < low) | (weights > (torch.inf if high is None else high))
