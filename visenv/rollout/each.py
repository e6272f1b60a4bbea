"""Plays more episodes than fit in memory: each episode is saved and released when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from visenv import background
from visenv.types import Episode

T = TypeVar("T")

CONCURRENCY = 32
"""Default number of episodes that are in memory at the same time."""


def for_each(
    items: Iterable[T],
    make: Callable[[T], Awaitable[Episode]],
    keep: Callable[[Episode], None],
    concurrency: int = CONCURRENCY,
) -> None:
    """Make an episode from each item, and pass each complete episode to `keep`.

    At most `concurrency` episodes are in memory at the same time, including episodes that wait for
    `keep`. A separate thread calls `keep` for one episode at a time, so that writing images does
    not block the sampling.

    Args:
        items: The items, which are read one at a time.
        make: Makes an episode from an item, for example `Collector.play`.
        keep: Receives a complete episode, for example `RunFolder.add`.
        concurrency: Maximum number of episodes that are made at the same time.
    """
    background.run_here(_for_each(items, make, keep, concurrency))


async def _for_each(
    items: Iterable[T],
    make: Callable[[T], Awaitable[Episode]],
    keep: Callable[[Episode], None],
    concurrency: int,
) -> None:
    waiting = iter(items)
    loop = asyncio.get_running_loop()

    async def work() -> None:
        for item in waiting:
            episode = await make(item)
            await loop.run_in_executor(writer, keep, episode)
            del episode  # release its memory while the next one is played

    with ThreadPoolExecutor(1, "visenv-writer") as writer:
        workers = [asyncio.ensure_future(work()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
