"""Implements decoupled clip and dynamic sampling policy optimization (DAPO)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from typing_extensions import override

from visenv.algorithm import Batch

from .base import Clipped, GroupRelative
from .token_loss import TokenLosses, token_mean, token_ratio


@dataclass(frozen=True, kw_only=True)
class DAPO(GroupRelative, Clipped):
    """Minimizes ``1/Σ_i |o_i| Σ_i Σ_t -min(ρ_it A_i, clip(ρ_it, 1 - low, 1 + high) A_i)``.

    ``A_i = (r_i - mean) / std`` in the group. DAPO differs from GRPO by a higher upper clip, so
    that unlikely tokens can become likely, and by equal weights of all tokens of the step. Its
    overlong shaping and filtering are the options `overlong_limit` and `mask_truncated`. Its
    dynamic sampling is an option of the trainer, because it selects the groups that are played.

    Source: DAPO (arXiv:2503.14476), equations 8 to 10.
    """

    clip_high: float = 0.28
    """Distance above 1 at which the ratio is clipped."""

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of each token."""
        return self.clipped(token_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over all tokens of the step."""
        return token_mean(values, batch)
