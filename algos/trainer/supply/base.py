"""The contract of a supply, and which of its episodes there is something to learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from visenv.errors import RunError
from visenv.types import Episode, Group

from ..journal import Journal

OnEpisode = Callable[[Episode], None]


def random_stream(seed: int, *keys: int) -> np.random.SeedSequence:
    """A stream of random numbers of its own for each sequence of keys."""
    return np.random.SeedSequence(seed, spawn_key=keys)


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of a step one process supplies; what all of them supply does not depend on it.

    Attributes:
        rank: The number of this process, from 0.
        count: How many there are.
    """

    rank: int = 0
    count: int = 1

    def of(self, total: int) -> range:
        """This process's part of ``range(total)``; in order of rank, the parts are the whole."""
        return range(self.rank * total // self.count, (self.rank + 1) * total // self.count)


class Supply(ABC):
    """Gives the episodes of a step, or of this process's share of it.

    Attributes:
        size: Episodes in a step, of all processes.
        journal: Keeps finished episodes for a run that is killed and resumed; None keeps none. Set
            before the first step.
    """

    size: int
    journal: Journal | None = None

    @abstractmethod
    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """The groups of that step, counted from 0, aborted episodes included."""

    def report(self) -> dict[str, float]:
        """What was measured since the last report, by names that begin with ``rollout/``."""
        return {}

    def prune(self, step: int) -> None:
        """Forget the first `step` steps: a checkpoint was taken after them."""
        if self.journal is not None:
            self.journal.prune(step)

    def close(self) -> None:  # noqa: B027 - most have nothing to give up
        """Give up what is still going on."""


def whole(group: Group) -> list[Episode]:
    """The episodes of a group that were not aborted."""
    return [episode for episode in group if episode.status != "aborted"]


def teachable(group: Group) -> list[Episode]:
    """What can be learnt from: the whole episodes, unless one is left alone of a larger group."""
    left = whole(group)
    return left if len(left) > 1 or len(group) == 1 else []


def usable(groups: Sequence[Group], step: int) -> list[Group]:
    """The groups without aborted episodes, and without those left alone of a larger group.

    Raises:
        RunError: If nothing is left to learn from.
    """
    kept: list[Group] = [left for group in groups if (left := teachable(group))]
    if not kept:
        episodes = [episode for group in groups for episode in group]
        reasons = sorted({str(each.failure or each.reason or each.status) for each in episodes})
        raise RunError(
            f"Step {step} has no episode to learn from: {len(groups)} groups, ended by {reasons}."
        )
    return kept
