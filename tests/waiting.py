"""Waits for events in tests. The limits only end a hang, so they do not decide a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

LIMIT: Final = 120.0
"""Seconds after which an event is regarded as one that never happens."""

_PAUSE: Final = 0.005


def wait_until(happened: Callable[[], object], seconds: float = LIMIT) -> None:
    """Wait until a condition holds.

    Args:
        happened: A function that returns a true value when the event has happened.
        seconds: The limit.

    Raises:
        AssertionError: If the condition does not hold within the limit.
    """
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"The event did not happen within {seconds:g} s."
        time.sleep(_PAUSE)


async def until(happened: Callable[[], object], seconds: float = LIMIT) -> None:
    """Wait until a condition holds, like `wait_until`, while the event loop runs."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"The event did not happen within {seconds:g} s."
        await asyncio.sleep(_PAUSE)
