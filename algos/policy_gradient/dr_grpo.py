"""Implements GRPO done right (Dr. GRPO), which removes two biases of GRPO."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from typing_extensions import override

from visenv.algorithm import Batch

from .advantage import Scale
from .base import Clipped, GroupRelative
from .token_loss import TokenLosses, episode_sum, token_ratio


@dataclass(frozen=True, kw_only=True)
class DrGRPO(GroupRelative, Clipped):
    """Minimizes ``1/G Σ_i 1/max_tokens Σ_t -min(ρ_it A_i, clip(ρ_it, 1 - low, 1 + high) A_i)``.

    ``A_i = r_i - mean`` in the group, without the standard deviation, which would weight samples by
    their difficulty. The constant `max_tokens` replaces ``|o_i|``, which would reduce the penalty
    of long wrong answers.

    Source: Dr. GRPO (arXiv:2503.20783), section 3.
    """

    scale: Scale = "none"
    """Standard deviation by which the advantages are divided."""
    max_tokens: int = 512
    """Maximum number of sampled tokens of an episode, used as the constant of the normalizer. It
    only scales the gradient."""

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of each token."""
        return self.clipped(token_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over episodes of the sum over their tokens divided by a constant."""
        return episode_sum(values, batch) / self.max_tokens
