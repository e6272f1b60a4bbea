"""Tests that deferred events are logged at their turn, once they are known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from visenv import background
from visenv.turn_execution import LateEvents
from visenv.types import Event, EventLog, TurnTaken


def event(turn: int) -> Event:
    return TurnTaken(turn, f"event {turn}", "")


async def later(seconds: float, *turns: int) -> Iterable[Event]:
    await asyncio.sleep(seconds)
    return [event(turn) for turn in turns]


def test_late_events_are_inserted_at_their_places() -> None:
    late, log = LateEvents(), EventLog()
    log.append(event(0))
    late.defer(1, later(0.02, 1, 2))
    log.append(event(3))
    late.defer(2, later(0.0, 4))
    log.append(event(5))
    assert late
    background.run(late.insert_into(log))
    assert [each.turn for each in log] == [0, 1, 2, 3, 4, 5]
    assert not late


def test_cancelled_events_are_not_inserted() -> None:
    late, log = LateEvents(), EventLog()
    late.defer(0, later(60.0, 1))
    late.cancel()
    assert not late
    background.run(late.insert_into(log))
    assert len(log) == 0
