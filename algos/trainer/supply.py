"""Where the episodes of a step come from: played by the policy, or taken from a list.

What a supply gives for a step depends on the run's seed and the step alone, so that a resumed run
needs no memory of the steps before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from visenv.errors import ConfigurationError, RunError
from visenv.policy import TrainablePolicy
from visenv.rollout import Collector
from visenv.seeding import seeds
from visenv.types import Episode, Group

OnEpisode = Callable[[Episode], None]

_SCENES, _ORDER = 1, 2


def random_stream(seed: int, *keys: int) -> np.random.SeedSequence:
    """A stream of random numbers of its own for each sequence of keys."""
    return np.random.SeedSequence(seed, spawn_key=keys)


class Supply(Protocol):
    """Gives the episodes of a step.

    Attributes:
        size: Episodes in a step, for progress bars.
    """

    size: int

    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """The groups of that step, aborted episodes included."""


class Played:
    """Episodes that the policy plays on fresh scenes, in groups.

    Args:
        collector: Plays.
        policy: The policy the collector plays with, to switch it to sampling.
        groups: Groups in a step.
        group_size: Episodes in a group.
        seed: The run's seed.
    """

    def __init__(
        self,
        collector: Collector,
        policy: TrainablePolicy[Any],
        groups: int,
        group_size: int,
        seed: int,
    ) -> None:
        self.size = groups * group_size
        self._collector = collector
        self._policy = policy
        self._groups = groups
        self._group_size = group_size
        self._seed = seed

    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """Play them."""
        drawn = seeds(random_stream(self._seed, _SCENES, step), self._groups)
        self._policy.train_mode(False)
        return self._collector.groups(drawn, self._group_size, on_episode)


class Taken:
    """Episodes taken from a list, in a new random order each time all have been used.

    Args:
        episodes: All of them, with segments.
        size: Episodes in a step.
        seed: The run's seed.

    Raises:
        ConfigurationError: If there is nothing to take, or an episode has no segments.
    """

    def __init__(self, episodes: Sequence[Episode], size: int, seed: int) -> None:
        if size < 1 or not episodes:
            raise ConfigurationError(
                f"Expected episodes, and at least 1 in a step; got {len(episodes)} and {size}."
            )
        if not all(episode.segments for episode in episodes):
            raise ConfigurationError(
                "An episode has no segments to learn from; encode it first: policy.encode(episode)."
            )
        self.size = size
        self._episodes = episodes
        self._seed = seed

    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """The next `size` episodes, each a group by itself."""
        places = range(step * self.size, (step + 1) * self.size)
        count = len(self._episodes)
        orders = {epoch: self._order(epoch) for epoch in {place // count for place in places}}
        taken = [self._episodes[orders[place // count][place % count]] for place in places]
        for episode in taken:
            on_episode(episode)
        return [[episode] for episode in taken]

    def _order(self, epoch: int) -> list[int]:
        rng = np.random.default_rng(random_stream(self._seed, _ORDER, epoch))
        return [int(index) for index in rng.permutation(len(self._episodes))]


def usable(groups: Sequence[Group], step: int) -> list[Group]:
    """The groups without aborted episodes, and without those left alone of a larger group.

    Raises:
        RunError: If nothing is left to learn from.
    """
    kept: list[Group] = []
    for group in groups:
        whole = [episode for episode in group if episode.status != "aborted"]
        if whole and (len(whole) > 1 or len(group) == 1):
            kept.append(whole)
    if not kept:
        reasons = sorted({episode.reason for group in groups for episode in group})
        raise RunError(
            f"Step {step} has no episode to learn from: {len(groups)} groups, ended by {reasons}."
        )
    return kept
