"""Implements BNPO: GRPO normalized by the tokens of the batch (TRL's ``bnpo``)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from typing_extensions import override

from visenv.algorithm import Batch

from .base import Clipped, GroupRelative
from .token_loss import TokenLosses, token_mean, token_ratio


@dataclass(frozen=True, kw_only=True)
class BNPO(GroupRelative, Clipped):
    """Minimizes ``1/Σ_i |o_i| Σ_i Σ_t -min(ρ_it A_i, clip(ρ_it, 1 - ε, 1 + ε) A_i)``.

    ``A_i = (r_i - mean) / std`` in the group. TRL divides by the tokens of the micro-batch, so its
    loss depends on how a step is divided. visenv divides by the tokens of the step, so BNPO is DAPO
    with the symmetric clip of PPO. It is not the Beta normalization of arXiv:2506.02864, which is
    also called BNPO.

    Source: TRL 1.16, ``loss_type="bnpo"``.
    """

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of each token."""
        return self.clipped(token_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over all tokens of the step."""
        return token_mean(values, batch)
