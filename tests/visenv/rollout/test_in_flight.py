"""Tests `InFlightBarrier`: the order of verdicts does not change when episodes are released."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from visenv.rollout.in_flight import InFlightBarrier, Order


class Played:
    """Plays episodes with a barrier; the test sets their verdicts."""

    def __init__(self) -> None:
        self.barrier = InFlightBarrier()
        self.released: list[Order] = []
        self.verdicts: dict[Order, asyncio.Event] = {}
        self.retries: dict[Order, asyncio.Event] = {}

    def start(self, *orders: Order) -> dict[Order, asyncio.Task[None]]:
        self.verdicts |= {order: asyncio.Event() for order in orders}
        return {order: asyncio.create_task(self._play(order)) for order in orders}

    async def _play(self, order: Order) -> None:
        self.barrier.enter()
        try:
            await self.verdicts[order].wait()
            await self.barrier.hold(order)
            self.released.append(order)
            if order in self.retries:  # repeats the episode without leaving the count
                await self.retries[order].wait()
        finally:
            self.barrier.leave()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


ORDERS = [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("arrival", list(itertools.permutations(ORDERS)))
def test_held_episodes_are_released_together_in_order(arrival: tuple[Order, ...]) -> None:
    async def run() -> None:
        played = Played()
        tasks = played.start(*ORDERS)
        await settled()
        for order in arrival:
            assert played.released == []
            played.verdicts[order].set()
            await settled()
        assert played.released == ORDERS
        await asyncio.gather(*tasks.values())

    asyncio.run(run())


def test_episode_that_is_played_again_holds_the_next_back() -> None:
    async def run() -> None:
        played = Played()
        again = played.retries[0, 0] = asyncio.Event()
        first = played.start((0, 0))
        await settled()
        played.verdicts[0, 0].set()
        await settled()  # the episode is released, and is now repeated
        second = played.start((1, 0))
        await settled()
        played.verdicts[1, 0].set()
        await settled()
        assert played.released == [(0, 0)]
        again.set()
        await settled()
        assert played.released == [(0, 0), (1, 0)]
        await asyncio.gather(*first.values(), *second.values())

    asyncio.run(run())


@pytest.mark.parametrize("moment", ["before its verdict", "while it is held", "once released"])
def test_cancelled_episode_leaves_no_session_waiting(moment: str) -> None:
    async def run() -> None:
        played = Played()
        tasks = played.start((0, 0), (0, 1))
        await settled()
        if moment != "before its verdict":
            played.verdicts[0, 0].set()
            await settled()
        if moment == "once released":
            # The task was released in this turn of the event loop, and has not resumed yet.
            played.barrier.leave()
            tasks[0, 0].cancel()
            played.barrier.enter()
        else:
            tasks[0, 0].cancel()
        await settled()
        assert tasks[0, 0].cancelled()
        assert played.released == []
        played.verdicts[0, 1].set()
        await settled()
        assert played.released == [(0, 1)]
        third = played.start((0, 2))  # the count is right: later episodes are released
        await settled()
        played.verdicts[0, 2].set()
        await settled()
        assert played.released == [(0, 1), (0, 2)]
        await asyncio.gather(tasks[0, 1], third[0, 2])

    asyncio.run(run())
