"""Selects which of the played groups a step learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from visenv.errors import ConfigurationError
from visenv.types import Group

from .base import OnExhausted, trainable_episodes


@dataclass(frozen=True)
class SelectionConfig:
    """Sets how groups are chosen; by default the first ones drawn are taken as they come out."""

    dynamic_sampling: bool = False
    """Whether groups in which all got the same reward, which teach nothing, are replaced by others
    (dynamic sampling, DAPO)."""
    spare_groups: int = 0
    """Most groups played in a step in place of such ones, and of those that were aborted; where
    they do not suffice, groups are taken as they are."""
    early_groups: int = 0
    """How many of the spare groups begin with the step, before it is known whether they are
    needed; those that are not are cancelled."""
    spare_members: int = 0
    """Episodes begun in each group beyond its size; the slowest are cancelled."""
    on_exhausted: OnExhausted = "drop_member"
    """What happens when an episode was aborted in every attempt: ``"drop_member"`` leaves it out of
    its group, ``"drop_group"`` leaves out the whole group. If long episodes fail more often than
    short ones, groups without their failed members are biased. A spare member that takes the place
    of a failed one keeps the group in both cases."""
    ordered: bool = True
    """Whether the first groups drawn are kept, not the first that end. What is kept then depends on
    what was played alone, never on how long it took."""

    def __post_init__(self) -> None:
        if self.on_exhausted not in get_args(OnExhausted):
            raise ConfigurationError(
                f"on_exhausted is one of {get_args(OnExhausted)}, got {self.on_exhausted!r}."
            )
        if min(self.spare_groups, self.early_groups, self.spare_members) < 0:
            raise ConfigurationError(f"Numbers of spare groups and members begin at 0: {self}.")
        if self.early_groups > self.spare_groups:
            raise ConfigurationError(
                f"early_groups are some of the spare_groups, got {self.early_groups} of "
                f"{self.spare_groups}."
            )
        if self.dynamic_sampling and not self.spare_groups:
            raise ConfigurationError(
                "With dynamic_sampling, groups are replaced by others: say how many with "
                "spare_groups."
            )
        if self.ordered and self.spare_members:
            raise ConfigurationError(
                "With spare_members the fastest of a group are kept, which depends on the clock; "
                "say so with ordered=False."
            )


class GroupSelector:
    """Decides, group by group, what is kept and whether another has to begin.

    Args:
        wanted: Groups to keep.
        selection: How.
        first: Number of the first group.

    Attributes:
        begun: Number of the group that would begin next.
        zero_std: Groups given up because all their rewards were the same.
    """

    def __init__(self, wanted: int, selection: SelectionConfig, first: int = 0) -> None:
        self.begun = first
        self.zero_std = 0
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

    @property
    def done(self) -> bool:
        """Return whether the groups to keep are decided, whatever other groups end with."""
        all_ended = len(self._ended) == self.begun - self._first
        return len(self._decided()) == self._wanted or (all_ended and self.begun >= self._last)

    def kept(self) -> dict[int, Group]:
        """Return the groups of the step by number: good ones, others only at the limit."""
        good = self._decided()
        others = [number for number in sorted(self._ended) if number not in good]
        chosen = good + others[: self._wanted - len(good)]
        return {number: self._ended[number] for number in sorted(chosen)}

    def _decided(self) -> list[int]:
        """Return the good groups that are kept whatever happens next."""
        good = self._good
        if self._selection.ordered:
            undecided = (n for n in range(self._first, self.begun) if n not in self._ended)
            until = next(undecided, self.begun)
            good = sorted(number for number in good if number < until)
        return good[: self._wanted]
