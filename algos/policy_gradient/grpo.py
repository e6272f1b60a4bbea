"""Group relative policy optimization (GRPO)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from typing_extensions import override

from visenv.algorithm import Batch

from .aggregation import sequence_mean
from .base import Clipped, GroupRelative
from .ratio import TokenLosses, token_ratio


@dataclass(frozen=True, kw_only=True)
class GRPO(GroupRelative, Clipped):
    """``1/G Σ_i 1/|o_i| Σ_t -min(ρ_it A_i, clip(ρ_it, 1 - low, 1 + high) A_i) + kl_coef D_it``.

    ``A_i = (r_i - mean) / std`` in the group. The defaults are Groundlight's: clip-higher, no
    reference.

    Source: DeepSeekMath (arXiv:2402.03300), equation 3.
    """

    clip_high: float = 0.28
    """How far above 1."""

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of each token."""
        return self.clipped(token_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over sequences of the mean over their tokens."""
        return sequence_mean(values, batch)
