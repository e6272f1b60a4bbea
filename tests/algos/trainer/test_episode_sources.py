"""Tests episode sources: a step's episodes depend on seed and step only, and none is left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.algos.trainer.episode_sources import OfflineSource, Shard, trainable_groups
from visenv.errors import RunError
from visenv.types import Episode, Failure


class _Listed(OfflineSource):
    """Holds numbers instead of episodes, to test which elements `OfflineSource` selects."""

    def __init__(self, count: int, size: int, seed: int) -> None:
        self.size = size
        self._episodes = cast("Any", range(count))
        self._seed = seed
        self._share = Shard()

    def numbers(self, step: int) -> list[int]:
        return [number for (number,) in self.groups(step, lambda _: None)]  # type: ignore[misc]


@given(st.integers(1, 20), st.integers(1, 30), st.integers(0, 2**32))
def test_episodes_are_used_once_in_every_pass(count: int, size: int, seed: int) -> None:
    episode_source = _Listed(count, size, seed)
    taken = [number for step in range(count) for number in episode_source.numbers(step)]
    assert len(taken) == count * size
    for start in range(0, len(taken), count):  # `count` steps are `size` complete passes
        assert sorted(taken[start : start + count]) == list(range(count))


def test_passes_differ_and_seeds_differ_and_a_step_repeats() -> None:
    episode_source = _Listed(20, 20, seed=0)
    assert episode_source.numbers(0) != episode_source.numbers(1)
    assert episode_source.numbers(0) != _Listed(20, 20, seed=1).numbers(0)
    assert episode_source.numbers(3) == _Listed(20, 20, seed=0).numbers(3)


def _episode(aborted: bool) -> Episode:
    episode = Episode("e-v0", "s", "", 0, 0, 0, (), "terminated")
    failure = Failure("service", "judge", "away")
    return replace(episode, status="aborted", failure=failure) if aborted else episode


@pytest.mark.parametrize(
    ("groups", "kept"),
    [
        (["..", ".."], [2, 2]),
        (["...", "x.."], [3, 2]),
        (["...", "xx."], [3]),  # the only member left in its group has no baseline
        (["...", "xxx"], [3]),
        ([".", "x", "."], [1, 1]),  # groups of one never have a baseline
    ],
)
def test_aborted_episodes_and_those_left_alone_are_dropped(
    groups: list[str], kept: list[int]
) -> None:
    played: Any = [[_episode(mark == "x") for mark in group] for group in groups]
    left = trainable_groups(played, step=1)
    assert [len(group) for group in left] == kept
    assert Counter(episode.status for group in left for episode in group) == {
        "terminated": sum(kept)
    }


@pytest.mark.parametrize(
    ("groups", "kept"),
    [
        (["..", ".."], [2, 2]),
        (["...", "x.."], [3]),  # two members are left, but the whole group is dropped
        (["x..", ".x.", "..x", "..."], [3]),
        (["xxx", "..."], [3]),
        ([".", "x", "."], [1, 1]),
    ],
)
def test_group_with_an_aborted_member_is_dropped_with_drop_group(
    groups: list[str], kept: list[int]
) -> None:
    played: Any = [[_episode(mark == "x") for mark in group] for group in groups]
    left = trainable_groups(played, step=1, on_exhausted="drop_group")
    assert [len(group) for group in left] == kept
    with pytest.raises(RunError, match="no episode to learn from"):
        trainable_groups([[_episode(False), _episode(True)]], 1, "drop_group")


def test_empty_supply_is_an_error_with_the_reason() -> None:
    with pytest.raises(RunError, match=r"Step 7 has no episode.*2 groups.*judge: away"):
        trainable_groups([[_episode(True)] * 2] * 2, step=7)
