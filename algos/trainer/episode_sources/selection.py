"""Selects the groups that a step trains on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from visenv.errors import ConfigurationError
from visenv.types import Group

from .base import OnExhausted, trainable_episodes

MOST_UNREADABLE = 16
"""Maximum number of groups in a step that replace groups whose row cannot be read."""


@dataclass(frozen=True)
class SelectionConfig:
    """Holds the settings of the selection of groups; by default all groups are used."""

    dynamic_sampling: bool = False
    """Whether groups in which all rewards are equal, which give no gradient, are replaced by other
    groups (dynamic sampling, DAPO)."""
    spare_groups: int = 0
    """Maximum number of groups in a step that replace groups with equal rewards or aborted groups;
    if they are not enough, such groups are kept."""
    early_groups: int = 0
    """Number of spare groups that start at the beginning of the step, before they are known to be
    needed; groups that are not needed are cancelled."""
    spare_members: int = 0
    """Number of additional episodes that are started in each group; the slowest are cancelled."""
    on_exhausted: OnExhausted = "drop_member"
    """How an episode that was aborted in every attempt is handled: ``"drop_member"`` leaves it out
    of its group, ``"drop_group"`` leaves out the whole group. If long episodes fail more often than
    short ones, groups without their failed members are biased. With both values, a spare member can
    replace a failed one."""
    ordered: bool = True
    """Whether the groups that were drawn first are kept, and not those that end first. The
    selection then depends only on the episodes and not on their duration."""

    def __post_init__(self) -> None:
        if self.on_exhausted not in get_args(OnExhausted):
            raise ConfigurationError(
                f"on_exhausted is one of {get_args(OnExhausted)}, got {self.on_exhausted!r}."
            )
        if min(self.spare_groups, self.early_groups, self.spare_members) < 0:
            raise ConfigurationError(
                f"The numbers of spare groups and members must be at least 0: {self}."
            )
        if self.early_groups > self.spare_groups:
            raise ConfigurationError(
                f"early_groups must be at most spare_groups, got {self.early_groups} and "
                f"{self.spare_groups}."
            )
        if self.dynamic_sampling and not self.spare_groups:
            raise ConfigurationError(
                "With dynamic_sampling, groups are replaced by others: set their number by "
                "spare_groups."
            )
        if self.ordered and self.spare_members:
            raise ConfigurationError(
                "With spare_members, the fastest episodes of a group are kept, which depends on "
                "time; confirm this by ordered=False."
            )


class GroupSelector:
    """Decides which groups are kept and whether another group must start.

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
        self._last = first + wanted + selection.spare_groups
        self._ended: dict[int, Group] = {}
        self._good: list[int] = []

    def begin(self) -> int | None:
        """Return the number of the next group to start, or None."""
        bad = len(self._ended) - len(self._good)
        running_or_good = self.begun - self._first - bad
        enough = running_or_good >= self._wanted + self._selection.early_groups
        if enough or self.begun >= self._last:
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
        """Return whether the groups to keep are decided, independent of the other groups."""
        all_ended = len(self._ended) == self.begun - self._first
        return len(self._decided()) == self._wanted or (all_ended and self.begun >= self._last)

    def kept(self) -> dict[int, Group]:
        """Return the selected groups by number; unsuitable groups are used only at the limit."""
        good = self._decided()
        others = [number for number in sorted(self._ended) if number not in good]
        chosen = good + others[: self._wanted - len(good)]
        return {number: self._ended[number] for number in sorted(chosen)}

    def _decided(self) -> list[int]:
        """Return the suitable groups that are kept independent of the other groups."""
        good = self._good
        if self._selection.ordered:
            undecided = (n for n in range(self._first, self.begun) if n not in self._ended)
            until = next(undecided, self.begun)
            good = sorted(number for number in good if number < until)
        return good[: self._wanted]


def _is_unreadable(group: Group) -> bool:
    failures = [episode.failure for episode in group]
    return all(failure is not None and failure.source == "data" for failure in failures)
