"""The gate: never too many inside, by rank, and no place is ever lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.rollout.gate import Gate


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 4))
def test_whoever_waits_is_served_by_rank_then_by_arrival(ranks: list[int], places: int) -> None:
    entered: list[int] = []
    inside = most = 0

    async def visit(number: int) -> None:
        nonlocal inside, most
        await gate.acquire(ranks[number])
        entered.append(number)
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        gate.release()

    async def everyone() -> None:
        await asyncio.gather(*(visit(number) for number in range(len(ranks))))

    gate = Gate(places)
    asyncio.run(everyone())
    assert most == min(places, len(ranks))
    # The first find the gate open; among the others the lowest rank goes first.
    waited = list(range(places, len(ranks)))
    expected = list(range(min(places, len(ranks)))) + sorted(waited, key=lambda n: (ranks[n], n))
    assert entered == expected


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.booleans())
def test_who_gives_up_while_waiting_takes_no_place_with_him(
    gives_up: list[bool], granted: bool
) -> None:
    async def run() -> int:
        await gate.acquire()
        waiting = [asyncio.create_task(gate.acquire()) for _ in gives_up]
        await asyncio.sleep(0)
        if granted:
            gate.release()  # the first has its place, and has not noticed
        for task, cancelled in zip(waiting, gives_up, strict=True):
            if cancelled:
                task.cancel()
        if not granted:
            gate.release()
        served = 0
        for task, cancelled in zip(waiting, gives_up, strict=True):
            try:
                await task
            except asyncio.CancelledError:
                assert cancelled
            else:
                served += 1
                gate.release()
        await asyncio.wait_for(gate.acquire(), 1)
        gate.release()
        return served

    gate = Gate(1)
    assert asyncio.run(run()) == gives_up.count(False)


def test_one_gate_serves_one_event_loop_after_another() -> None:
    async def crowd() -> None:
        async def visit() -> None:
            await gate.acquire()
            await asyncio.sleep(0)
            gate.release()

        await asyncio.gather(*(visit() for _ in range(3)))

    gate = Gate(1)
    for _ in range(2):
        asyncio.run(crowd())


def test_a_loop_that_ends_while_somebody_waits_leaves_no_place_taken() -> None:
    async def abandoned() -> None:
        await gate.acquire()
        waiting = asyncio.create_task(gate.acquire())
        await asyncio.sleep(0)
        gate.release()
        del waiting  # asyncio.run cancels it, with the place already granted

    gate = Gate(1)
    asyncio.run(abandoned())
    with pytest.raises(TimeoutError):  # one place, not two
        asyncio.run(_twice(gate))


async def _twice(gate: Gate) -> None:
    await asyncio.wait_for(gate.acquire(), 1)
    await asyncio.wait_for(gate.acquire(), 0.01)
