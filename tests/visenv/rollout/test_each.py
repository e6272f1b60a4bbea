"""Tests playing more episodes than fit into memory."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.waiting import LIMIT
from visenv.rollout.collector import for_each
from visenv.types import Episode


def episode(group: int) -> Episode:
    return Episode("e", f"s{group}", "", group, group, 0, (), "terminated")


def test_items_give_one_episode_each() -> None:
    kept: list[Episode] = []

    async def make(group: int) -> Episode:
        await asyncio.sleep(0.001 * (group % 3))
        return episode(group)

    for_each(range(20), make, kept.append, concurrency=4)
    assert sorted(each.group for each in kept) == list(range(20))


def test_episodes_at_once_are_limited() -> None:
    changed = threading.Condition()
    made, existing, most, keeping = 0, 0, 0, 0

    async def make(group: int) -> Episode:
        nonlocal made, existing, most
        with changed:
            made += 1
            existing += 1
            most = max(most, existing)
            changed.notify_all()
        return episode(group)

    def keep(_: Episode) -> None:
        nonlocal existing, keeping
        with changed:
            keeping += 1
            assert keeping == 1  # one call at a time
            assert changed.wait_for(lambda: existing == 3 or made == 30, LIMIT)
            keeping -= 1
            existing -= 1

    for_each(range(30), make, keep, concurrency=3)
    assert (existing, most) == (0, 3)


def test_items_are_read_when_they_are_needed() -> None:
    waiting = iter(range(100))

    async def make(group: int) -> Episode:
        if group == 10:
            raise RuntimeError("stop")
        return episode(group)

    with pytest.raises(RuntimeError, match="stop"):
        for_each(waiting, make, lambda _: None, concurrency=2)
    assert next(waiting) <= 13  # the other task may read two items before it is cancelled


@pytest.mark.parametrize("where", ["make", "keep"])
def test_error_ends_the_work_and_is_raised(where: str) -> None:
    kept: list[int] = []

    async def make(group: int) -> Episode:
        if where == "make" and group == 3:
            raise ValueError("no")
        await asyncio.sleep(0.001)
        return episode(group)

    def keep(each: Episode) -> None:
        if where == "keep" and each.group == 3:
            raise ValueError("no")
        kept.append(each.group)

    with pytest.raises(ValueError, match="no"):
        for_each(range(1000), make, keep, concurrency=2)
    assert len(kept) < 20
