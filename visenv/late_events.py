"""Holds the events of a turn that are computed while the episode continues."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

from visenv import background
from visenv.scorers.scorer import using
from visenv.scorers.verdict_events import EpisodeVerdicts
from visenv.types import Event, EventLog


class LateEvents:
    """Holds the deferred events of an episode, with their places in the event log."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, Future[Iterable[Event]]]] = []

    def __bool__(self) -> bool:
        """Return whether there are events that have not been logged yet."""
        return bool(self._coming)

    def defer(self, place: int, events: Coroutine[Any, Any, Iterable[Event]]) -> None:
        """Begin to compute events that belong in the log before its event `place` (from 0)."""
        self._coming.append((place, background.start(events)))

    def cancel(self) -> None:
        """Cancel all deferred events."""
        coming, self._coming = self._coming, []
        for _, events in coming:
            events.cancel()

    async def insert_into(self, log: EventLog) -> None:
        """Wait for the deferred events and insert them into the log.

        Raises:
            ServiceError: If a service that the events need still failed after its retries.
        """
        coming, self._coming = self._coming, []
        for place, events in reversed(coming):  # an insertion moves only the later places
            log.insert_all(place, await background.wait(events))


async def with_verdicts(turn: int, events: Awaitable[Iterable[Event]]) -> Iterable[Event]:
    """Return the events of a turn; the verdicts of the requested scorers come first."""
    verdicts = EpisodeVerdicts(turn, "", None)
    with using(verdicts):
        found = await events
    return (*verdicts.sorted_events(), *found)
