"""Implements rejection sampling: SFT on the best episodes of each group of every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from typing_extensions import override

from visenv.algorithm import Batch
from visenv.types import Group

from .advantage import Floats
from .base import PolicyGradient
from .token_loss import TokenLosses, token_mean


@dataclass(frozen=True, kw_only=True)
class RejectionSampling(PolicyGradient):
    """Minimizes ``-1/Σ_i |o_i| Σ_i A_i Σ_t log p(o_it)``.

    ``A_i`` is ``N/K`` if episode i is kept and 0 otherwise, for N episodes in the step, of which K
    are kept. The episodes with the highest reward of their group are kept; a group whose rewards
    are all equal is left out. The algorithm uses as many episodes and steps as GRPO, so a
    comparison with GRPO shows the effect of learning from failures.

    Source: RAFT (arXiv:2304.06767), section 3; leaving out groups with equal rewards follows
    arXiv:2504.11343, section 4.
    """

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the weight of each episode: equal for kept episodes, with a mean of 1 over all."""
        kept = [_best([episode.reward for episode in group]) for group in groups]
        share = float(np.concatenate(kept).mean()) if kept else 0.0
        scale = 1.0 / share if share else 0.0
        return [[np.asarray(each * scale) for each in group] for group in kept]

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the weighted negative log-likelihood of each token, without metrics."""
        return TokenLosses(-batch.logprobs * batch.advantages, {})

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over all tokens of the step."""
        return token_mean(values, batch)


def _best(rewards: Sequence[float]) -> Floats:
    """Return 1.0 for the highest rewards and 0.0 for the others; 0.0 for all if all are equal."""
    values = np.asarray(rewards, np.float64)
    if values.min() == values.max():
        return np.zeros(len(values))
    return np.asarray(values == values.max(), np.float64)
