"""Prepares the next micro-batch in another thread while the current one is computed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")
Made = TypeVar("Made")


def prefetched(make: Callable[[Item], Made], items: Sequence[Item]) -> Generator[Made]:
    """Yield ``make(item)`` for each item, in order.

    While the caller uses one value, another thread computes the next one, so at most two values
    exist. If the iterator is not read to its end, close it (`contextlib.closing`) to end the
    thread.

    Args:
        make: The function that computes a value. It must not share mutable state with the caller.
        items: The arguments of `make`; a single item is computed in the thread of the caller.

    Raises:
        Exception: An exception of `make`, when its value is requested.
    """
    if len(items) < 2:
        yield from map(make, items)
        return
    with ThreadPoolExecutor(1, "visenv-prefetch") as worker:
        coming = worker.submit(make, items[0])
        for item in items[1:]:
            made = coming.result()
            coming = worker.submit(make, item)
            yield made
            del made
        yield coming.result()


def pinned(collated: Any) -> Any:
    """Return a collated micro-batch in pinned memory, from which copies to a GPU are asynchronous.

    Args:
        collated: The output of `TrainablePolicy.collate`. It is returned unchanged if there is no
            GPU, or if it has no method ``pin_memory`` (the convention of PyTorch's DataLoader).
    """
    if not torch.cuda.is_available() or not hasattr(collated, "pin_memory"):
        return collated
    return collated.pin_memory()
