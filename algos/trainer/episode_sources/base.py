"""The contract of an episode source, and which of its episodes there is something to learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from visenv.errors import RunError
from visenv.types import Episode, Group

from ..journal import EpisodeJournal

if TYPE_CHECKING:
    from .samples import SampleOrder

OnEpisode = Callable[[Episode], None]
OnExhausted = Literal["drop_member", "drop_group"]
"""What happens to the group of an episode that was aborted in every attempt."""


def random_stream(seed: int, *keys: int) -> np.random.SeedSequence:
    """Return an independent stream of random numbers for each sequence of keys."""
    return np.random.SeedSequence(seed, spawn_key=keys)


@dataclass(frozen=True, slots=True)
class Shard:
    """Says which part of a step one process supplies; what all supply does not depend on it.

    Attributes:
        rank: The number of this process, from 0.
        count: How many there are.
    """

    rank: int = 0
    count: int = 1

    def of(self, total: int) -> range:
        """Return this process's part of ``range(total)``; all parts in order are the whole."""
        return range(self.rank * total // self.count, (self.rank + 1) * total // self.count)


class EpisodeSource(ABC):
    """Gives the episodes of a step, or of this process's share of it.

    Attributes:
        size: Episodes in a step, of all processes.
        samples: Which sample each group plays; None if nothing is played.
        journal: Keeps finished episodes for a run that is killed and resumed; None keeps none. Set
            before the first step.
    """

    size: int
    samples: SampleOrder | None = None
    journal: EpisodeJournal | None = None

    @abstractmethod
    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """Return the groups of that step, counted from 0, aborted episodes included."""

    def env_of(self, step: int, group: Group) -> str:
        """Return the name of the environment of a group of a step.

        Args:
            step: The step, counted from 0; the present one.
            group: One of its groups, of any process.

        Returns:
            Its name in the mixture; ``""`` where there is only one environment.
        """
        return "" if self.samples is None else self.samples.env_of(step, group[0].group)

    def report(self) -> dict[str, float]:
        """Return what was measured since the last report, by names that begin with ``rollout/``."""
        return {}

    def prune(self, step: int) -> None:
        """Forget the first `step` steps: a checkpoint was taken after them."""
        if self.journal is not None:
            self.journal.prune(step)

    def close(self) -> None:  # noqa: B027 - most have nothing to give up
        """Give up what is still going on."""


def without_aborted(group: Group) -> list[Episode]:
    """Return the episodes of a group that were not aborted."""
    return [episode for episode in group if episode.status != "aborted"]


def trainable_episodes(group: Group, on_exhausted: OnExhausted = "drop_member") -> list[Episode]:
    """Return the episodes of a group that can be learned from.

    They are those that were not aborted. None is returned if only one is left of a larger group, or
    if the whole group is dropped for an aborted one.
    """
    left = without_aborted(group)
    if len(left) < len(group) and (on_exhausted == "drop_group" or len(left) == 1):
        return []
    return left


def trainable_groups(
    groups: Sequence[Group], step: int, on_exhausted: OnExhausted = "drop_member"
) -> list[Group]:
    """Return the episodes of each group that can be learned from, without empty groups.

    Raises:
        RunError: If nothing is left to learn from.
    """
    kept: list[Group] = [
        left for group in groups if (left := trainable_episodes(group, on_exhausted))
    ]
    if not kept:
        episodes = [episode for group in groups for episode in group]
        reasons = sorted({str(each.failure or each.reason or each.status) for each in episodes})
        raise RunError(
            f"Step {step} has no episode to learn from: {len(groups)} groups, ended by {reasons}."
        )
    return kept
