"""REINFORCE leave-one-out (RLOO)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from typing_extensions import override

from visenv.algorithm import Batch
from visenv.types import Group

from .advantage import Floats, leave_one_out
from .aggregation import sequence_sum
from .base import Clipped
from .ratio import TokenLosses, token_ratio


@dataclass(frozen=True, kw_only=True)
class RLOO(Clipped):
    """``1/G Σ_i Σ_t -min(ρ_it A_i, clip(ρ_it, 1 - low, 1 + high) A_i)``.

    ``A_i = r_i - mean of the others' r``, an unbiased baseline. While the policy is the one that
    sampled, the gradient is REINFORCE's, ``-A_i ∇ log p(o_i)``, with the whole episode as one
    action. The paper takes one step on every batch; for further steps the ratio is each token's, as
    in verl (TRL's is the sequence's product, which soon leaves the clip).

    Source: RLOO (arXiv:2402.14740), section 3.2.
    """

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return how much better each episode did than the mean of the others."""
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
        """Return the mean over sequences of the sum over their tokens."""
        return sequence_sum(values, batch)
