"""Micro-batches made ready in another thread, while the one before them is computed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")
Made = TypeVar("Made")


def prefetched(make: Callable[[Item], Made], items: Sequence[Item]) -> Generator[Made]:
    """Yield ``make(item)`` for each item, in their order.

    While the caller works with one, the next is made by another thread; none is made earlier than
    that, so that at most two exist. Close the iterator where it is not read to its end
    (`contextlib.closing`): the thread then ends.

    Args:
        make: Makes what is yielded. It shares no state with what the caller does meanwhile.
        items: What it is made from; a single one is made on the caller's own thread.

    Raises:
        Exception: Whatever `make` raises, in the place of what it would have made.
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
    """Return a collated micro-batch in pinned memory, which copies to a GPU need not wait for.

    Args:
        collated: What `TrainablePolicy.collate` gave. It is returned as it is where there is no
            GPU, or where it has no method ``pin_memory`` (the convention of PyTorch's DataLoader).
    """
    if not torch.cuda.is_available() or not hasattr(collated, "pin_memory"):
        return collated
    return collated.pin_memory()
