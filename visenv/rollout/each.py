"""Playing more episodes than fit into memory: each is handed on when it ends, and none is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from visenv import background
from visenv.types import Episode

T = TypeVar("T")

CONCURRENCY = 32
"""How many episodes are in memory at the same time."""


def for_each(
    items: Iterable[T],
    make: Callable[[T], Awaitable[Episode]],
    keep: Callable[[Episode], None],
    concurrency: int = CONCURRENCY,
) -> None:
    """Make an episode of each item, and hand each to `keep` when it is complete.

    At most `concurrency` episodes are in memory at the same time, including those that wait for
    `keep`. `keep` is called in one other thread, one episode at a time, so that writing images does
    not hold up the sampling.

    Args:
        items: What to make episodes of; read one by one.
        make: Makes an episode of an item, for example `Collector.play`.
        keep: Takes a complete episode, for example `RunFolder.add`.
        concurrency: How many episodes are made at the same time.
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
            del episode  # not kept while the next one is played

    with ThreadPoolExecutor(1, "visenv-writer") as writer:
        workers = [asyncio.ensure_future(work()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
