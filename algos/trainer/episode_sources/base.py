"""Defines the contract of an episode source, and selects the episodes that can be trained on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from visenv.errors import RunError
from visenv.types import Episode, Group

from ..journal import EpisodeJournal
from .samples import SampleOrder

OnEpisode = Callable[[Episode], None]
OnExhausted = Literal["drop_member", "drop_group"]
"""How the group of an episode that was aborted in every attempt is handled."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Describes the part of a step that one process provides.

    The union of all parts does not depend on the number of processes.

    Attributes:
        rank: The number of this process, from 0.
        count: The number of processes.
    """

    rank: int = 0
    count: int = 1

    def of(self, total: int) -> range:
        """Return the part of this process of ``range(total)``; all parts in order are the range."""
        return range(self.rank * total // self.count, (self.rank + 1) * total // self.count)


class EpisodeSource(ABC):
    """Provides the episodes of a step, or the share of this process.

    Attributes:
        size: The number of episodes in a step, over all processes.
        samples: The samples of the groups; None if no episodes are played.
        journal: The journal, which saves finished episodes for a run that is killed and resumed;
            None saves none. It is set before the first step.
        replayed_seconds: The seconds in which an earlier process played the latest step; 0 if the
            step was not read completely from an exact journal.
    """

    size: int
    samples: SampleOrder | None = None
    journal: EpisodeJournal | None = None
    replayed_seconds: float = 0.0

    @abstractmethod
    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """Return the groups of a step (counted from 0), including aborted episodes."""

    def env_of(self, step: int, group: Group) -> str:
        """Return the name of the environment of a group of a step.

        Args:
            step: The current step, counted from 0.
            group: A group of the step, of any process.

        Returns:
            The name of the environment in the mixture; ``""`` if there is only one environment.
        """
        return "" if self.samples is None else self.samples.env_of(step, group[0].group)

    def report(self) -> dict[str, float]:
        """Return the metrics since the last report, with names that begin with ``rollout/``."""
        return {}

    def prune(self, step: int) -> None:
        """Delete the data of the first `step` steps, after which a checkpoint was saved."""
        if self.journal is not None:
            self.journal.prune(step)

    def forget(self, step: int) -> None:
        """Delete the data of a step, counted from 0, so that a resumed run plays it again."""
        if self.journal is not None:
            self.journal.forget(step)

    def close(self) -> None:  # noqa: B027 - most have nothing to give up
        """Cancel all episodes that are being played."""


def without_aborted(group: Group) -> list[Episode]:
    """Return the episodes of a group that were not aborted."""
    return [episode for episode in group if episode.status != "aborted"]


def trainable_episodes(group: Group, on_exhausted: OnExhausted = "drop_member") -> list[Episode]:
    """Return the episodes of a group that can be trained on.

    These are the episodes that were not aborted. The list is empty if only one episode of a larger
    group is left, or if `on_exhausted` drops the group because of an aborted episode.
    """
    left = without_aborted(group)
    if len(left) < len(group) and (on_exhausted == "drop_group" or len(left) == 1):
        return []
    return left


def trainable_groups(
    groups: Sequence[Group], step: int, on_exhausted: OnExhausted = "drop_member"
) -> list[Group]:
    """Return the episodes of each group that can be trained on, without empty groups.

    Raises:
        RunError: If no episode is left.
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
