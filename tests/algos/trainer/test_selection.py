"""Tests `GroupSelector`: which groups are kept, for any order in which groups end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.algos.trainer.episode_sources import SelectionConfig
from visenv.algos.trainer.episode_sources.selection import (
    MOST_BATCHES,
    MOST_UNREADABLE,
    GroupSelector,
)
from visenv.errors import ConfigurationError
from visenv.types import Episode, Failure, Group, Turn

GOOD, ALIKE, ABORTED, UNREADABLE = "good", "alike", "aborted", "unreadable"


def group(kind: str) -> Group:
    """Return two episodes with rewards 0 and 1, with rewards 1 and 1, or aborted."""
    rewards = {GOOD: (0.0, 1.0), ALIKE: (1.0, 1.0)}.get(kind, (0.0, 0.0))
    turns = [(Turn((), "", reward, (), "stop"),) for reward in rewards]
    episodes = [Episode("e", "s", "", 0, 0, m, turn, "terminated") for m, turn in enumerate(turns)]
    if kind in (ABORTED, UNREADABLE):
        failure = Failure("service", "judge", "away")
        if kind == UNREADABLE:
            failure = Failure("data", "ImageError", "photo.png is broken")
        episodes = [replace(each, status="aborted", failure=failure) for each in episodes]
    return episodes


def run(kinds: list[str], wanted: int, selection: SelectionConfig, order: int) -> GroupSelector:
    """Begin all groups that may begin and end them in a random order, until none is needed."""
    rng = np.random.default_rng(order)
    choice = GroupSelector(wanted, selection)
    running: list[int] = []
    while not choice.done:
        while (number := choice.begin()) is not None:
            running.append(number)
        number = running.pop(int(rng.integers(len(running))))
        choice.end(number, group(kinds[number]))
    return choice


KINDS = st.builds(
    lambda first, rest: [*first, *[rest] * 40],
    st.lists(st.sampled_from([GOOD, ALIKE, ABORTED]), max_size=12),
    st.sampled_from([GOOD, ALIKE, ABORTED]),
)
"""Kinds of all groups that a step of at most four groups may start."""


@given(KINDS, st.integers(1, 4), st.booleans(), st.integers(0, 1000))
def test_choice_does_not_depend_on_what_ends_first(
    kinds: list[str], wanted: int, dynamic: bool, order: int
) -> None:
    kept = run(kinds, wanted, SelectionConfig(dynamic), order).kept()
    # Expected: the first usable groups, then the first others, among all that may be played.
    most = wanted * (MOST_BATCHES if dynamic else 1)
    fine = (GOOD,) if dynamic else (GOOD, ALIKE)
    good = [n for n in range(most) if kinds[n] in fine]
    others = [n for n in range(most) if kinds[n] not in fine]
    assert list(kept) == sorted((good + others)[:wanted])


@given(
    st.lists(st.sampled_from([GOOD, UNREADABLE]), min_size=8, max_size=8),
    st.integers(1, 4),
    st.integers(0, 1000),
)
def test_groups_of_unreadable_rows_are_replaced(kinds: list[str], wanted: int, order: int) -> None:
    kinds = [*kinds, *[GOOD] * 30]
    choice = run(kinds, wanted, SelectionConfig(), order)
    readable = [number for number, kind in enumerate(kinds) if kind != UNREADABLE]
    assert list(choice.kept()) == readable[:wanted]
    assert choice.unreadable == kinds[: readable[wanted - 1]].count(UNREADABLE)


def test_replacements_of_unreadable_rows_are_limited() -> None:
    choice = run([UNREADABLE] * 100, 2, SelectionConfig(), 0)
    assert choice.begun == 2 + MOST_UNREADABLE
    assert list(choice.kept()) == [0, 1]  # the trainer reports that no episode is left


def test_choice_begins_no_more_groups_than_may_be_needed() -> None:
    choice = GroupSelector(2, SelectionConfig(dynamic_sampling=True))
    assert [choice.begin() for _ in range(3)] == [0, 1, None]
    choice.end(1, group(ALIKE))
    assert [choice.begin(), choice.begin()] == [2, None]
    choice.end(2, group(GOOD))
    assert not choice.done  # group 0 precedes group 2
    choice.end(0, group(GOOD))
    assert choice.done
    assert list(choice.kept()) == [0, 2]
    assert (choice.zero_std, choice.begun) == (1, 3)


def test_group_without_one_member_is_replaced_with_drop_group() -> None:
    """Check a group with rewards 0 and 1 and an aborted member: the rewards left still differ."""
    good, failed = group(GOOD), group(ABORTED)
    partly = [*good, failed[0]]
    for on_exhausted, kept in (("drop_member", [0, 1]), ("drop_group", [1, 2])):
        selection = SelectionConfig(dynamic_sampling=True, on_exhausted=on_exhausted)  # type: ignore[arg-type]
        choice = GroupSelector(2, selection)
        assert [choice.begin(), choice.begin(), choice.begin()] == [0, 1, None]
        choice.end(0, partly)
        if on_exhausted == "drop_group":
            assert choice.begin() == 2
            choice.end(2, good)
        choice.end(1, good)
        assert choice.done
        assert list(choice.kept()) == kept


def test_dropped_group_is_taken_where_none_is_left_to_replace_it() -> None:
    """Check that the incomplete group is kept: later the trainer leaves it out and reports it."""
    choice = GroupSelector(1, SelectionConfig(on_exhausted="drop_group"))
    assert choice.begin() == 0
    choice.end(0, [*group(GOOD), group(ABORTED)[0]])
    assert choice.done
    assert list(choice.kept()) == [0]


def test_groups_are_taken_as_they_come_by_default() -> None:
    kinds = [GOOD, ALIKE, ABORTED, GOOD]
    choice = run(kinds, 3, SelectionConfig(), order=0)
    assert list(choice.kept()) == [0, 1, 2]  # the trainer counts the aborted group later
    assert choice.begun == 3


def test_unknown_way_to_handle_exhausted_episodes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"one of .*, got 'drop'"):
        SelectionConfig(on_exhausted="drop")  # type: ignore[arg-type]
