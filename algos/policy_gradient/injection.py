"""Implements GRPO with an injected ground truth, as in the public code of Visual-ARFT.

The paper does not mention this step. Before rewards are computed, the public trainer for coding
replaces the text of one completion of each group, drawn without a seed, by the ground truth. The
sampled tokens and their log-probabilities are kept, so these tokens get the reward of the ground
truth. Use this algorithm only to replicate published numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from visenv.types import Episode, Group

from .advantage import Floats
from .grpo import GRPO

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GroundTruthInjectedGRPO(GRPO):
    """Trains by GRPO on groups in which one random member gets the reward of the ground truth.

    Every replaced reward is logged, and a run's checkpoints record this algorithm.
    """

    injected_reward: float = 2.0
    """Reward of the ground truth."""
    injection_seed: int = 0
    """Seed that selects the member of each group; the same seed and group give the same member."""

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the advantages of GRPO after replacing one reward in each group."""
        return super().estimate([self._injected(group) for group in groups])

    def _injected(self, group: Group) -> Group:
        if not group:
            return group
        seed = group[0].seed
        rng = np.random.default_rng([self.injection_seed, seed])
        place = int(rng.integers(len(group)))
        chosen = group[place]
        _log.info(
            "ground truth injected: group of seed %d, member %d, reward %g replaced by %g",
            *(seed, chosen.member, chosen.reward, self.injected_reward),
        )
        return [*group[:place], _paid(chosen, self.injected_reward), *group[place + 1 :]]


def _paid(episode: Episode, reward: float) -> Episode:
    """Return the episode with the reward of its last turn changed so that the sum is `reward`."""
    *others, last = episode.turns
    added = reward - episode.reward
    return replace(episode, turns=(*others, replace(last, reward=last.reward + added)))
