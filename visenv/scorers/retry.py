"""Trying a request again while that can help; the waiting is tenacity's."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import tenacity

T = TypeVar("T")

LONGEST_WAIT = 60.0
"""Seconds; a server that asks for a longer wait is asked again after this time."""

_backoff = tenacity.wait_exponential(multiplier=0.5, max=2 * LONGEST_WAIT)  # 0.5 s, 1 s, 2 s, …


class TransientError(Exception):
    """Raised by a client or a backend when a request failed but may succeed later.

    Args:
        problem: What went wrong, for a person.
        after: Seconds that the server asks to wait.
    """

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class RefusedError(Exception):
    """Raised by a client or a backend when a request failed and would fail again."""


async def retried(attempt: Callable[[], Awaitable[T]], retries: int) -> T:
    """Await attempts until one raises no `TransientError`.

    The wait doubles each time and is multiplied by a random number from 0.5 to 1. It is never
    shorter than the server asks, and never longer than `LONGEST_WAIT`.

    Args:
        attempt: Makes one attempt.
        retries: Further attempts after the first.

    Raises:
        TransientError: The last attempt's.
        Exception: Any other exception of an attempt, at once.
    """
    if retries == 0:  # tenacity takes longer than a cheap rule
        return await attempt()

    async def once() -> T:  # tenacity awaits only what was defined by `async def`
        return await attempt()

    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(retries + 1),
        wait=_wait,
        retry=tenacity.retry_if_exception_type(TransientError),
        sleep=_sleep,
        reraise=True,
    )
    return await retrying(once)


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def _wait(state: tenacity.RetryCallState) -> float:
    failure = state.outcome.exception() if state.outcome is not None else None
    told = failure.after if isinstance(failure, TransientError) else 0.0
    jitter = random.uniform(0.5, 1.0)  # so that clients that failed together come back apart
    return min(max(_backoff(state) * jitter, told), LONGEST_WAIT)


def retry_after(header: str) -> float:
    """Return the seconds of a Retry-After header: a number or a date (RFC 9110, section 10.2.3).

    Anything else, and a date in the past, is 0.
    """
    if re.fullmatch(r"\d{1,9}", header.strip()):
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds: float = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds)
