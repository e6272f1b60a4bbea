"""Retries requests that may succeed later, with the waiting times of tenacity."""

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
"""Maximum wait in seconds; if a server requests a longer wait, the request is sent after this
time.
"""

_backoff = tenacity.wait_exponential(multiplier=0.5, max=2 * LONGEST_WAIT)  # 0.5 s, 1 s, 2 s, …


class TransientError(Exception):
    """Raised by a client or a backend when a request failed but may succeed later.

    Args:
        problem: A description of the problem for a person.
        after: Number of seconds that the server requests to wait.
    """

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class RefusedError(Exception):
    """Raised by a client or a backend when a request failed and would fail again."""


async def retried(attempt: Callable[[], Awaitable[T]], retries: int) -> T:
    """Await attempts until one of them raises no `TransientError`.

    The wait doubles each time and is multiplied by a random number from 0.5 to 1. It is at least
    the wait that the server requests, and at most `LONGEST_WAIT`.

    Args:
        attempt: Makes one attempt.
        retries: Maximum number of further attempts after the first.

    Raises:
        TransientError: The error of the last attempt.
        Exception: Any other exception of an attempt, immediately.
    """
    if retries == 0:  # tenacity is slower than a cheap rule
        return await attempt()

    async def once() -> T:  # tenacity only awaits functions defined by `async def`
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
    jitter = random.uniform(0.5, 1.0)  # so that clients do not retry at the same time
    return min(max(_backoff(state) * jitter, told), LONGEST_WAIT)


def retry_after(header: str) -> float:
    """Return the seconds of a Retry-After header: a number or a date (RFC 9110, section 10.2.3).

    The result is 0 for any other value and for a date in the past.
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
