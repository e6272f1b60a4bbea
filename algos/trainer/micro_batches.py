"""Divides an optimizer step into micro-batches, and prepares each while another is computed.

All processes have the same number of micro-batches. If several processes share a model, each must
run the same parts of the model equally often. Otherwise they wait for each other forever. Some
models run their vision tower once for all images of a micro-batch, and once for all videos. If the
micro-batches of other processes contain text, images or videos that a micro-batch lacks, a *filler*
with them is therefore added to it. A filler is a segment of the same step with the weight 0. It
stays in the graph because of its backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import torch

from visenv.policy import BatchBudget, TrainablePolicy
from visenv.types import Segment, Visual

from .credit import TrainingSegment
from .distributed import DistributedContext

Kind = Literal["video", "image", "text"]
"""What a segment contains for the model to read; every segment contains text."""

_KINDS: tuple[Kind, ...] = get_args(Kind)


class DummySegment(NamedTuple):
    """Holds a filler: a segment that is computed but has no weight in the loss."""

    segment: Segment
    images: Mapping[str, Visual]


class MicroBatch(NamedTuple):
    """Holds the segments of one forward pass.

    Attributes:
        own: The segments that are trained on.
        fillers: The fillers, at most one for images and one for videos.
    """

    own: Sequence[TrainingSegment]
    fillers: Sequence[DummySegment] = ()

    def collated(self, policy: TrainablePolicy[Any]) -> Any:
        """Return the output of `TrainablePolicy.collate`, with the fillers last."""
        given: list[TrainingSegment | DummySegment] = [*self.own, *self.fillers]
        images = {sha256: shown for each in given for sha256, shown in each.images.items()}
        return policy.collate([each.segment for each in given], images)


class _Need(NamedTuple):
    """Describes the micro-batches and the possible fillers of a process, for the others.

    Attributes:
        batches: Number of micro-batches.
        lacking: The kinds that at least one of them lacks.
        tokens: Number of tokens of the shortest possible filler of each kind.
    """

    batches: int
    lacking: AbstractSet[Kind]
    tokens: Mapping[Kind, int]


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
    own = _possible_fillers(credited)
    lacking = {kind for part in parts for kind in _KINDS if kind not in _kinds_of(part)}
    tokens = {kind: len(filler.segment) for kind, filler in own.items()}
    needs = processes.gather(_Need(len(parts), lacking, tokens))
    shown = [kind for kind in _KINDS if any(kind in each.tokens for each in needs)]
    if not shown:
        return []
    count = max(each.batches for each in needs)
    fillers: dict[Kind, DummySegment] = {}
    for kind in [kind for kind in shown if kind != "text"] or shown:
        if any(each.batches < count or kind in each.lacking for each in needs):
            lengths = [each.tokens.get(kind, math.inf) for each in needs]
            filler = processes.broadcast(own.get(kind), lengths.index(min(lengths)))
            assert filler is not None, "the process with the shortest filler has it"
            fillers[kind] = filler
    parts += [[]] * (count - len(parts))
    return [MicroBatch(part, _missing(part, fillers)) for part in parts]


def _kinds_of(part: Sequence[TrainingSegment | DummySegment]) -> set[Kind]:
    """Return the kinds that a micro-batch contains."""
    segments = [each.segment for each in part]
    found = (
        any(each.videos for each in segments),
        any(each.images for each in segments),
        bool(segments),
    )
    return {kind for kind, is_there in zip(_KINDS, found, strict=True) if is_there}


def _possible_fillers(credited: Sequence[TrainingSegment]) -> dict[Kind, DummySegment]:
    """Return the shortest filler of each kind.

    A filler needs a sampled token, otherwise it has no backward pass.
    """
    usable = [
        DummySegment(each.segment, each.images) for each in credited if each.segment.loss_mask.any()
    ]
    shortest: dict[Kind, DummySegment] = {}
    for filler in sorted(usable, key=lambda each: len(each.segment)):
        for kind in _kinds_of([filler]):
            shortest.setdefault(kind, filler)
    return shortest


def _missing(
    part: Sequence[TrainingSegment], fillers: Mapping[Kind, DummySegment]
) -> list[DummySegment]:
    """Return the fillers with the kinds that a micro-batch lacks."""
    missing: list[DummySegment] = []
    for kind, filler in fillers.items():
        if kind not in _kinds_of([*part, *missing]):
            missing.append(filler)
    return missing


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
