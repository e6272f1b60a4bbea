"""Supplies the episodes of a step: played by the policy, played ahead, or taken from a list.

Which episodes a source gives for a step depends on the run's seed and the step alone, so that a
resumed run needs no memory of the steps before.
"""

from .async_rollouts import AsyncRolloutSource
from .base import EpisodeSource, OnEpisode, Shard, random_stream, trainable_groups
from .offline import OfflineSource
from .rollouts import RolloutSource
from .selection import SelectionConfig

__all__ = [
    "AsyncRolloutSource",
    "EpisodeSource",
    "OfflineSource",
    "OnEpisode",
    "RolloutSource",
    "SelectionConfig",
    "Shard",
    "random_stream",
    "trainable_groups",
]
