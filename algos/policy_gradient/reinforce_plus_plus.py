"""Implements REINFORCE++, whose baseline is the mean over the whole step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from typing_extensions import override

from visenv.algorithm import Batch
from visenv.types import Group

from .advantage import Floats, returns_to_go, sampled_tokens, whitened
from .base import Baseline, Clipped
from .token_loss import TokenLosses, token_mean, token_ratio


@dataclass(frozen=True, kw_only=True)
class ReinforcePlusPlus(Clipped):
    """Minimizes ``1/Σ_i |o_i| Σ_i Σ_t -min(ρ_it A_it, clip(ρ_it, 1 - ε, 1 + ε) A_it)``.

    ``A_it = (R_it - mean) / std``, where ``R_it`` is the return to go. The mean and the standard
    deviation are computed over all sampled tokens of the step, so groups can have a single episode.
    In the paper, the KL divergence is part of the reward. Here it is part of the loss (`kl_coef`),
    as in the paper's variant with a baseline, which uses k2.

    Source: REINFORCE++ (arXiv:2501.03262), section 3.
    """

    baseline: Baseline = "none"
    """Baseline of the rewards; "group" first subtracts the mean reward of the group (REINFORCE++
    with baseline)."""
    discount: float = 1.0
    """Discount of the return of the next turn."""

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the returns to go of all turns of the step, whitened over tokens."""
        episodes = [episode for group in groups for episode in group]
        if not episodes:
            return [[] for _ in groups]
        returns = [self._returns(group) for group in groups]
        flat = np.concatenate([each for group in returns for each in group])  # [turns of the step]
        counts = np.concatenate([sampled_tokens(episode) for episode in episodes])  # as `flat`
        ends = np.cumsum([len(episode.turns) for episode in episodes])
        parts = iter(np.split(whitened(flat, counts), ends[:-1]))  # [turns] of each episode
        return [[next(parts) for _ in group] for group in groups]

    def _returns(self, group: Group) -> list[Floats]:
        mean = 0.0
        if self.baseline == "group" and group:
            mean = float(np.mean([episode.reward for episode in group]))
        return [returns_to_go(episode, self.discount) - mean for episode in group]

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of each token."""
        return self.clipped(token_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over all tokens of the step."""
        return token_mean(values, batch)
