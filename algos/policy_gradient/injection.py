"""GRPO with ground truth slipped in: what Visual-ARFT's public code does, and its paper leaves out.

Before rewards are computed, its trainer for coding replaces the text of one completion of each
group, drawn without a seed, by the ground truth. The tokens and their log-probabilities stay those
that were sampled, so whatever they say gets the credit of the ground truth. This is here to
replicate published numbers, and for nothing else.
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
    """What the ground truth would be paid."""
    injection_seed: int = 0
    """Draws the members; one seed and one group, one member."""

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the advantages of GRPO, after one reward in each group was replaced."""
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
    """Return the episode with its last turn's reward changed so that the sum is `reward`."""
    *others, last = episode.turns
    added = reward - episode.reward
    return replace(episode, turns=(*others, replace(last, reward=last.reward + added)))
