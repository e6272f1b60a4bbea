"""Defines an algorithm: on-policy RL with the optimal baseline (OPO, arXiv 2505.23585)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from visenv.algorithm import Algorithm, Batch, Loss
from visenv.types import Group


class OPO(Algorithm):
    """Implements REINFORCE with the length-weighted mean reward of the group as baseline."""

    @override
    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """Return the reward of each episode minus the baseline of its group."""
        return [
            [np.asarray(episode.reward - baseline(group)) for episode in group] for group in groups
        ]

    @override
    def loss(self, batch: Batch) -> Loss:
        """Return ``-A log p``, summed over the tokens of an episode."""
        zero = batch.logprobs.new_zeros(())
        weighted = torch.where(batch.mask, batch.logprobs * batch.advantages, zero)
        return Loss(-weighted.sum() / batch.total_episodes, {})


def baseline(group: Group) -> float:
    """Return the mean reward of a group, weighted by the number of sampled tokens."""
    tokens = [episode.num_sampled_tokens for episode in group]
    weighted = sum(count * each.reward for count, each in zip(tokens, group, strict=True))
    return weighted / max(sum(tokens), 1)
