"""Selects the groups that a step trains on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from visenv.errors import ConfigurationError
from visenv.types import Group

from .base import OnExhausted, trainable_episodes

MOST_BATCHES = 10
"""Dynamic sampling starts at most this many times the groups that a step keeps, the limit of
the published scripts of DAPO (``max_num_gen_batches``)."""
MOST_UNREADABLE = 16
"""Maximum number of groups in a step that replace groups whose row cannot be read."""


@dataclass(frozen=True)
class SelectionConfig:
    """Holds the settings of the selection of groups; by default all groups are used."""

    dynamic_sampling: bool = False
    """Whether groups in which all rewards are equal, which give no gradient, and aborted groups are
    replaced by other groups (dynamic sampling, DAPO). A step starts at most `MOST_BATCHES` times as
    many groups as it keeps; if they are not enough, such groups are kept."""
    on_exhausted: OnExhausted = "drop_member"
    """How an episode that was aborted in every attempt is handled: ``"drop_member"`` leaves it out
    of its group, ``"drop_group"`` leaves out the whole group. If long episodes fail more often than
    short ones, groups without their failed members are biased."""

    def __post_init__(self) -> None:
        if self.on_exhausted not in get_args(OnExhausted):
            raise ConfigurationError(
                f"on_exhausted is one of {get_args(OnExhausted)}, got {self.on_exhausted!r}."
            )


class GroupSelector:
    """Decides which groups are kept and whether another group must start.

    As many groups run as are missing, so the first suitable groups in the order of drawing are
    kept, and the selection depends only on the episodes and not on their duration.

    A group whose row cannot be read, for example because of a broken image, is replaced by another
    group, up to `MOST_UNREADABLE` times.

    Args:
        wanted: The number of groups to keep.
        selection: The settings of the selection.
        first: The number of the first group.

    Attributes:
        begun: The number of the next group.
        zero_std: The number of groups that were replaced because all their rewards are equal.
        unreadable: The number of groups that were replaced because their row cannot be read.
    """

    def __init__(self, wanted: int, selection: SelectionConfig, first: int = 0) -> None:
        self.begun = first
        self.zero_std = self.unreadable = 0
        self._first = first
        self._wanted = wanted
        self._selection = selection
        self._last = first + wanted * (MOST_BATCHES if selection.dynamic_sampling else 1)
        self._ended: dict[int, Group] = {}
        self._good: list[int] = []

    def begin(self) -> int | None:
        """Return the number of the next group to start, or None."""
        bad = len(self._ended) - len(self._good)
        running_or_good = self.begun - self._first - bad
        if running_or_good >= self._wanted or self.begun >= self._last:
            return None
        self.begun += 1
        return self.begun - 1

    def end(self, number: int, group: Group) -> None:
        """Record a group that has ended."""
        self._ended[number] = group
        left = trainable_episodes(group, self._selection.on_exhausted)
        rewards = {episode.reward for episode in left}
        if self._selection.dynamic_sampling and len(rewards) == 1:
            self.zero_std += 1
        elif rewards:
            self._good.append(number)
        elif _is_unreadable(group) and self.unreadable < MOST_UNREADABLE:
            self.unreadable += 1
            self._last += 1

    @property
    def done(self) -> bool:
        """Return whether all started groups have ended and no other one may start."""
        running = self.begun - self._first - len(self._ended)
        return not running and (len(self._good) == self._wanted or self.begun >= self._last)

    def kept(self) -> dict[int, Group]:
        """Return the selected groups by number; unsuitable groups are used only at the limit."""
        others = [number for number in sorted(self._ended) if number not in self._good]
        chosen = self._good + others[: self._wanted - len(self._good)]
        return {number: self._ended[number] for number in sorted(chosen)}


def _is_unreadable(group: Group) -> bool:
    failures = [episode.failure for episode in group]
    return all(failure is not None and failure.source == "data" for failure in failures)
