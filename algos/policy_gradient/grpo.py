"""Implements group relative policy optimization (GRPO)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from typing_extensions import override

from visenv.algorithm import Batch

from .base import Clipped, GroupRelative
from .token_loss import TokenLosses, episode_mean, token_ratio


@dataclass(frozen=True, kw_only=True)
class GRPO(GroupRelative, Clipped):
    """Minimizes the loss of GRPO.

    ``1/G Σ_i 1/|o_i| Σ_t -min(ρ_it A_i, clip(ρ_it, 1 - low, 1 + high) A_i) + kl_coef D_it``, with
    ``A_i = (r_i - mean) / std`` in the group. The defaults are those of Groundlight: a higher upper
    clip, and no reference model.

    Source: DeepSeekMath (arXiv:2402.03300), equation 3.
    """

    clip_high: float = 0.28
    """Distance above 1 at which the ratio is clipped."""

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of each token."""
        return self.clipped(token_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over episodes of the mean over their tokens."""
        return episode_mean(values, batch)
