"""Tests which turns are refused after a server may have lost its weights."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from visenv.policies.vllm.weights import WeightCheck


class Server:
    """Holds weights of an identity, and counts how often it is asked for them."""

    def __init__(self) -> None:
        self.identity = "own"
        self.asked = 0

    async def holds(self, identity: str) -> bool:
        self.asked += 1
        return self.identity == identity


def play(turns: Callable[[Server, WeightCheck], Awaitable[None]]) -> None:
    async def run() -> None:
        server = Server()
        check = WeightCheck(server.holds)
        check.identity = "own"
        await turns(server, check)

    asyncio.run(run())


def test_server_is_asked_once_after_each_doubt() -> None:
    async def turns(server: Server, check: WeightCheck) -> None:
        assert await check.passes()
        assert await check.passes()
        assert server.asked == 1
        check.doubt()
        assert await check.passes()
        assert server.asked == 2
        server.identity = "foreign"
        assert await check.passes()  # nothing shows the change
        check.begin_turns()
        assert not await check.passes()
        assert check.lost

    play(turns)


def test_turns_are_checked_after_an_interruption_until_none_is_active() -> None:
    async def turns(server: Server, check: WeightCheck) -> None:
        check.record_interruption()
        for number in (1, 2, 3):
            assert await check.passes()
            assert server.asked == number
        check.begin_turns()
        assert await check.passes()
        assert await check.passes()
        assert server.asked == 4

    play(turns)


def test_lost_weights_are_not_asked_for_again() -> None:
    async def turns(server: Server, check: WeightCheck) -> None:
        server.identity = "foreign"
        assert not await check.passes()
        server.identity = "own"
        check.doubt()
        assert not await check.passes()
        assert server.asked == 1

    play(turns)
