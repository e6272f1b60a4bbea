"""Provides the episodes of a step: played on demand, played in advance, or read from a list.

The episodes of a step depend only on the seed of the run and the number of the step. A resumed run
therefore needs no state of earlier steps.
"""

from .base import EpisodeSource, OnEpisode, Shard, trainable_groups
from .offline import OfflineSource
from .rollouts import AsyncRolloutSource, RolloutSource
from .selection import SelectionConfig

__all__ = [
    "AsyncRolloutSource",
    "EpisodeSource",
    "OfflineSource",
    "OnEpisode",
    "RolloutSource",
    "SelectionConfig",
    "Shard",
    "trainable_groups",
]
