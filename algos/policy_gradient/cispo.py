"""Implements clipped importance sampling policy optimization (CISPO)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from typing_extensions import override

from visenv.algorithm import Batch

from .base import GroupRelative
from .token_loss import TokenLosses, token_mean, token_ratio


@dataclass(frozen=True, kw_only=True)
class CISPO(GroupRelative):
    """Minimizes ``1/Σ_i |o_i| Σ_i Σ_t -sg(clip(ρ_it, min_ratio, max_ratio)) A_i log p_it``.

    This is REINFORCE weighted by the clipped ratio without its gradient (sg), so that no token
    loses its gradient by clipping. ``A_i = (r_i - mean) / std`` in the group.

    Source: MiniMax-M1 (arXiv:2506.13585), section 3.1, which has no lower bound; the upper bound is
    that of ScaleRL (arXiv:2510.13786). TRL's `epsilon_high` is `max_ratio`, and verl's
    `clip_ratio_high` is ``max_ratio - 1``.
    """

    min_ratio: float = 0.0
    """Lower bound of the weight of a token."""
    max_ratio: float = 5.0
    """Upper bound of the weight of a token."""

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the weighted negative log-likelihood, with the ratio and the clipped shares."""
        ratio = token_ratio(batch).detach()
        weight = ratio.clamp(self.min_ratio, self.max_ratio)
        watched = {
            "clip_low": ratio < self.min_ratio,
            "clip_high": ratio > self.max_ratio,
            "ratio": ratio,
        }
        return TokenLosses(-weight * batch.advantages * batch.logprobs, watched)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over all tokens of the step."""
        return token_mean(values, batch)
