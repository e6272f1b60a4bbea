"""Tests `PrioritySemaphore`: it bounds the holders, serves by rank, and never loses a place."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import LIMIT
from visenv.rollout.in_flight import PrioritySemaphore


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 4))
def test_priority_semaphore_serves_by_rank_then_by_arrival(ranks: list[int], places: int) -> None:
    entered: list[int] = []
    inside = most = 0

    async def visit(number: int) -> None:
        nonlocal inside, most
        await semaphore.acquire(ranks[number])
        entered.append(number)
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        semaphore.release()

    async def everyone() -> None:
        await asyncio.gather(*(visit(number) for number in range(len(ranks))))

    semaphore = PrioritySemaphore(places)
    asyncio.run(everyone())
    assert most == min(places, len(ranks))
    # The first tasks find free places; among the others the lowest rank goes first.
    waited = list(range(places, len(ranks)))
    expected = list(range(min(places, len(ranks)))) + sorted(waited, key=lambda n: (ranks[n], n))
    assert entered == expected


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.booleans())
def test_priority_semaphore_loses_no_place_to_a_cancelled_task(
    gives_up: list[bool], granted: bool
) -> None:
    async def run() -> int:
        await semaphore.acquire()
        waiting = [asyncio.create_task(semaphore.acquire()) for _ in gives_up]
        await asyncio.sleep(0)
        if granted:
            semaphore.release()  # the first task has a place, but has not resumed yet
        for task, cancelled in zip(waiting, gives_up, strict=True):
            if cancelled:
                task.cancel()
        if not granted:
            semaphore.release()
        served = 0
        for task, cancelled in zip(waiting, gives_up, strict=True):
            try:
                await task
            except asyncio.CancelledError:
                assert cancelled
            else:
                served += 1
                semaphore.release()
        await asyncio.wait_for(semaphore.acquire(), LIMIT)
        semaphore.release()
        return served

    semaphore = PrioritySemaphore(1)
    assert asyncio.run(run()) == gives_up.count(False)


def test_gate_serves_one_event_loop_after_another() -> None:
    async def crowd() -> None:
        async def visit() -> None:
            await semaphore.acquire()
            await asyncio.sleep(0)
            semaphore.release()

        await asyncio.gather(*(visit() for _ in range(3)))

    semaphore = PrioritySemaphore(1)
    for _ in range(2):
        asyncio.run(crowd())


def test_priority_semaphore_is_free_after_a_loop_that_ended_with_waiting_tasks() -> None:
    async def abandoned() -> None:
        await semaphore.acquire()
        waiting.append(asyncio.create_task(semaphore.acquire()))
        await asyncio.sleep(0)

    async def take_all() -> None:
        await asyncio.wait_for(semaphore.acquire(), LIMIT)
        with pytest.raises(TimeoutError):  # there is one place, not two
            await asyncio.wait_for(semaphore.acquire(), 0.01)

    waiting: list[asyncio.Task[None]] = []
    semaphore = PrioritySemaphore(1)
    asyncio.run(abandoned())
    assert waiting[0].cancelled()  # by the end of the loop
    semaphore.release()
    asyncio.run(take_all())
