"""Provides episodes from a list, for supervised and other offline training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.seeding import random_stream
from visenv.types import Episode, Group

from .base import EpisodeSource, OnEpisode, Shard

_ORDER = 2
"""Key of the random stream of the orders."""


class OfflineSource(EpisodeSource):
    """Provides episodes from a list, in epochs that each have a new random order.

    Args:
        episodes: All episodes, with segments.
        size: The number of episodes in a step.
        seed: The seed of the run.
        share: The share of the episodes of a step that this process uses.

    Raises:
        ConfigurationError: If there are no episodes, or an episode has no segments.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        size: int,
        seed: int,
        share: Shard = Shard(),  # noqa: B008 - frozen
    ) -> None:
        if size < 1 or not episodes:
            raise ConfigurationError(
                f"Expected episodes, and at least 1 in a step; got {len(episodes)} episodes, and "
                f"{size} in a step."
            )
        if not all(episode.segments for episode in episodes):
            raise ConfigurationError(
                "An episode has no segments to train on; encode it first: policy.encode(episode)."
            )
        self.size = size
        self._episodes = episodes
        self._seed = seed
        self._share = share
        self._is_mixture = len({episode.env_id for episode in episodes}) > 1

    @override
    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """Return the share of this process of the next `size` episodes, each as a group."""
        places = [step * self.size + place for place in self._share.of(self.size)]
        count = len(self._episodes)
        orders = {epoch: self._order(epoch) for epoch in {place // count for place in places}}
        taken = [self._episodes[orders[place // count][place % count]] for place in places]
        for episode in taken:
            on_episode(episode)
        return [[episode] for episode in taken]

    @override
    def env_of(self, step: int, group: Group) -> str:
        """Return the registered id; ``""`` if all episodes are of one environment."""
        return group[0].env_id if self._is_mixture else ""

    def _order(self, epoch: int) -> list[int]:
        rng = np.random.default_rng(random_stream(self._seed, _ORDER, epoch))
        return [int(index) for index in rng.permutation(len(self._episodes))]
