"""Computes how much likelier tokens have become, and the clipped loss."""

from __future__ import annotations

from typing import NamedTuple

import torch

from visenv.algorithm import Batch

LIMIT = 20.0
"""Log-ratios are held within ±20 (verl's bound), where their exponential is finite."""


class TokenLosses(NamedTuple):
    """Holds the loss of every sampled token.

    Attributes:
        values: float ``[segments, length]``, with gradient, 0 off the mask.
        watched: By name, what to log the mean of: ``[segments, length]`` or ``[segments, 1]``.
    """

    values: torch.Tensor
    watched: dict[str, torch.Tensor]


def bounded_exp(log_ratio: torch.Tensor) -> torch.Tensor:
    """Return ``exp(log_ratio)``, of any shape; constant beyond ±20, thus without gradient there."""
    return torch.exp(log_ratio.clamp(-LIMIT, LIMIT))


def token_ratio(batch: Batch) -> torch.Tensor:
    """Return ``p / p_old`` of each token, float ``[segments, length]``."""
    return bounded_exp(batch.logprobs - batch.old_logprobs)


def sequence_ratio(batch: Batch) -> torch.Tensor:
    """Return the geometric mean of a segment's ratios at all its tokens, ``[segments, length]``.

    Each token has the value of the whole segment and its own gradient, so that tokens may differ in
    advantage; where they do not, value and gradient of the segment's mean are GSPO's.

    Source: GSPO (arXiv:2507.18071), equation 7, in the form of GSPO-token, equation 14.
    """
    lengths = batch.mask.sum(-1, keepdim=True).clamp(min=1)  # [segments, 1]
    mean = (batch.logprobs - batch.old_logprobs).sum(-1, keepdim=True) / lengths  # [segments, 1]
    return bounded_exp(mean.detach() + batch.logprobs - batch.logprobs.detach())


def clipped(
    ratio: torch.Tensor,
    advantages: torch.Tensor,
    low: float,
    high: float,
    dual: float | None = None,
) -> TokenLosses:
    """Return ``-min(ρ A, clip(ρ, 1 - low, 1 + high) A)`` of each token, with ρ at most `dual`.

    Watches ``ratio``, and the share of tokens that the clip leaves without gradient:
    ``clip_low``, ``clip_high`` and, where there is a `dual`, ``clip_dual``.

    Args:
        ratio: ρ, ``p / p_old`` of the sampled tokens, of any shape.
        advantages: A, of the same shape.
        low: How far below 1 the ratio still counts.
        high: How far above 1; larger than `low` it is DAPO's clip-higher.
        dual: Where a bad token that became much likelier stops counting: the other side of the
            clip, which is open below an advantage of 0. Larger than ``1 + high``, or None.

    Source: DAPO (arXiv:2503.14476), eq. 10; with ``low = high`` PPO (arXiv:1707.06347), eq. 7;
    `dual`: arXiv:1912.09729, eq. 4.
    """
    within = ratio.clamp(1 - low, 1 + high)
    free = ratio if dual is None else ratio.clamp(max=dual)
    watched = {
        "clip_low": (ratio < 1 - low) & (advantages < 0),
        "clip_high": (ratio > 1 + high) & (advantages > 0),
        "ratio": ratio,
    }
    if dual is not None:
        watched["clip_dual"] = (ratio > dual) & (advantages < 0)
    return TokenLosses(-torch.minimum(free * advantages, within * advantages), watched)
