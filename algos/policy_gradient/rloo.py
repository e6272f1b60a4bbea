"""Implements REINFORCE leave-one-out (RLOO)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from typing_extensions import override

from visenv.algorithm import Batch
from visenv.types import Group

from .advantage import Floats, leave_one_out
from .base import Clipped
from .token_loss import TokenLosses, episode_sum, token_ratio


@dataclass(frozen=True, kw_only=True)
class RLOO(Clipped):
    """Minimizes ``1/G Σ_i Σ_t -min(ρ_it A_i, clip(ρ_it, 1 - low, 1 + high) A_i)``.

    ``A_i`` is ``r_i`` minus the mean reward of the other members, an unbiased baseline. On-policy,
    the gradient is that of REINFORCE, ``-A_i ∇ log p(o_i)``, with the whole episode as one action.
    The paper takes one step on every batch. For further steps, visenv uses the ratio of each token,
    as in verl. TRL uses the product of the ratios of a sequence, which soon exceeds the clip.

    Source: RLOO (arXiv:2402.14740), section 3.2.
    """

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the reward of each episode minus the mean reward of the others."""
        return [
            [np.asarray(each) for each in leave_one_out([episode.reward for episode in group])]
            for group in groups
        ]

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of each token."""
        return self.clipped(token_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over episodes of the sum over their tokens."""
        return episode_sum(values, batch)
