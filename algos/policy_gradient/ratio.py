"""Computes probability ratios and the clipped loss."""

from __future__ import annotations

from typing import NamedTuple

import torch

from visenv.algorithm import Batch

LIMIT = 20.0
"""The bound of log-ratios, ±20 as in verl, so that their exponential is finite."""


class TokenLosses(NamedTuple):
    """Holds the loss of every sampled token.

    Attributes:
        values: float ``[segments, length]``, with gradient, 0 outside the mask.
        watched: Values by name whose means are logged, ``[segments, length]`` or ``[segments, 1]``.
    """

    values: torch.Tensor
    watched: dict[str, torch.Tensor]


def bounded_exp(log_ratio: torch.Tensor) -> torch.Tensor:
    """Return ``exp(log_ratio)``, of any shape; it is constant, without gradient, beyond ±20."""
    return torch.exp(log_ratio.clamp(-LIMIT, LIMIT))


def token_ratio(batch: Batch) -> torch.Tensor:
    """Return ``p / p_old`` of each token, float ``[segments, length]``."""
    return bounded_exp(batch.logprobs - batch.old_logprobs)


def sequence_ratio(batch: Batch) -> torch.Tensor:
    """Return the geometric mean of the ratios of a segment for each token, ``[segments, length]``.

    Each token has the value of the whole segment and its own gradient, so that tokens can have
    different advantages. If all tokens of an episode of one segment have the same advantage, the
    value and the gradient of the mean over its tokens equal those of GSPO.

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

    The metrics are ``ratio`` and the shares of tokens that have no gradient because of the clip:
    ``clip_low``, ``clip_high`` and, with a `dual`, ``clip_dual``.

    Args:
        ratio: ρ, ``p / p_old`` of the sampled tokens, of any shape.
        advantages: A, of the same shape.
        low: The distance below 1 at which the ratio is clipped.
        high: The distance above 1 at which the ratio is clipped; a value above `low` is DAPO's
            clip-higher.
        dual: The upper bound of the ratio for tokens with a negative advantage, whose ratio PPO
            does not bound from above. It is larger than ``1 + high``, or None for no bound.

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
