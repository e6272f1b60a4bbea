"""The clipped loss of each token, and how the tokens of a step become one number."""

from __future__ import annotations

from typing import Literal

import torch

Normalisation = Literal["token", "sequence"]


def clipped_loss(
    ratio: torch.Tensor, advantages: torch.Tensor, low: float, high: float
) -> torch.Tensor:
    """``-min(ratio · A, clip(ratio, 1 - low, 1 + high) · A)`` of each token.

    Args:
        ratio: ``p_new / p_old`` of the sampled tokens, of any shape.
        advantages: A, of the same shape.
        low: How far below 1 the ratio still counts.
        high: How far above 1; larger than `low` it is DAPO's clip-higher.

    Source: DAPO (arXiv:2503.14476), eq. 10; with ``low = high`` PPO (arXiv:1707.06347), eq. 7.
    """
    clipped = ratio.clamp(1 - low, 1 + high)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def clipped_share(
    ratio: torch.Tensor, advantages: torch.Tensor, low: float, high: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Which tokens the clip leaves without gradient, below and above: two bool masks."""
    return (ratio < 1 - low) & (advantages < 0), (ratio > 1 + high) & (advantages > 0)


def aggregate(
    values: torch.Tensor,
    mask: torch.Tensor,
    total_tokens: int,
    total_segments: int,
    normalisation: Normalisation,
) -> torch.Tensor:
    """A micro-batch's share of the step's mean; the shares of a step add up to it.

    Args:
        values: ``[segments, length]``, 0 off the mask.
        mask: bool ``[segments, length]``.
        total_tokens: Sampled tokens of the whole step.
        total_segments: Segments of the whole step.
        normalisation: ``"token"`` gives every token of the step one weight (DAPO, eq. 8);
            ``"sequence"`` the mean of each segment, then the mean of those (GRPO, eq. 3).
    """
    if normalisation == "token":
        return values.sum() / max(total_tokens, 1)
    lengths = mask.sum(-1).clamp(min=1)
    return (values.sum(-1) / lengths).sum() / max(total_segments, 1)
