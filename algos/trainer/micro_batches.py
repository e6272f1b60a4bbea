"""Divides an optimizer step into micro-batches, and prepares each while another is computed.

All processes have the same number of micro-batches. If several processes share a model, each must
run the same parts of the model equally often. Otherwise they wait for each other forever. A process
with fewer micro-batches therefore runs additional ones with a *filler*. A process whose micro-batch
contains no image, while those of other processes do, adds the filler to it. A filler is a segment
of the same step with the weight 0. It stays in the graph because of its backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import torch

from visenv.policy import BatchBudget, TrainablePolicy
from visenv.types import Segment, Visual

from .credit import TrainingSegment
from .distributed import DistributedContext


class DummySegment(NamedTuple):
    """Holds a filler: a segment that is computed but has no weight in the loss."""

    segment: Segment
    images: Mapping[str, Visual]

    @property
    def cost(self) -> tuple[bool, int]:
        """Return a sort key: the best filler has images or videos and few tokens."""
        return not self.segment.spans, len(self.segment)


class MicroBatch(NamedTuple):
    """Holds the segments of one forward pass.

    Attributes:
        own: The segments that are trained on.
        filler: The filler, or None.
    """

    own: Sequence[TrainingSegment]
    filler: DummySegment | None = None

    def collated(self, policy: TrainablePolicy[Any]) -> Any:
        """Return the output of `TrainablePolicy.collate`, with the filler last."""
        segments = [each.segment for each in self.own]
        images = {sha256: shown for each in self.own for sha256, shown in each.images.items()}
        if self.filler is not None:
            segments.append(self.filler.segment)
            images.update(self.filler.images)
        return policy.collate(segments, images)


class _Need(NamedTuple):
    """Holds the number of micro-batches and the best filler of a process, for the others."""

    batches: int
    lacks_images: bool
    cost: tuple[bool, int] | None


def micro_batches(
    policy: TrainablePolicy[Any],
    credited: Sequence[TrainingSegment],
    budget: BatchBudget,
    processes: DistributedContext,
) -> list[MicroBatch]:
    """Return the micro-batches of this process; every process gets the same number.

    Args:
        policy: The policy, which divides the segments.
        credited: The segments of this process.
        budget: The limits of one forward pass.
        processes: The processes of the run, which all make this call.
    """
    indices = policy.split([each.segment for each in credited], budget) if credited else []
    parts = [[credited[index] for index in part] for part in indices]
    if processes.count == 1:
        return [MicroBatch(part) for part in parts]
    candidate = _candidate(credited)
    cost = None if candidate is None else candidate.cost
    needs = processes.gather(_Need(len(parts), not all(map(_shows_images, parts)), cost))
    costs = [each.cost for each in needs]
    count = max(each.batches for each in needs)
    best = min((each for each in costs if each is not None), default=None)
    if best is None:
        return []
    images = not best[0]
    filler = None
    if any(each.batches < count or (images and each.lacks_images) for each in needs):
        filler = processes.broadcast(candidate, costs.index(best))
    parts += [[]] * (count - len(parts))
    return [
        MicroBatch(part, filler if not part or (images and not _shows_images(part)) else None)
        for part in parts
    ]


def _shows_images(part: Sequence[TrainingSegment]) -> bool:
    return any(each.segment.spans for each in part)


def _candidate(credited: Sequence[TrainingSegment]) -> DummySegment | None:
    """Return the best filler; it needs a sampled token, otherwise it has no backward pass."""
    fillers = [DummySegment(each.segment, each.images) for each in credited]
    usable = [each for each in fillers if each.segment.loss_mask.any()]
    return min(usable, key=lambda each: each.cost, default=None)


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
