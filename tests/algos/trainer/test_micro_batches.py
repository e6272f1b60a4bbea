"""Tests the fillers of micro-batches: all processes run the same parts of a model equally often."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.waiting import LIMIT
from visenv.policy import BatchBudget
from visenv.types import ImageSpan, PlaceholderRun, Segment, TurnSpan, VideoSpan

pytest.importorskip("torch")

from visenv.algos.trainer.credit import TrainingSegment
from visenv.algos.trainer.micro_batches import MicroBatch, micro_batches

pytestmark = pytest.mark.component("torch")


class OneEach:
    """Splits segments such that each is a micro-batch."""

    def split(self, segments: Sequence[Segment], _: BatchBudget) -> list[list[int]]:
        return [[index] for index in range(len(segments))]


class Thread:
    """Represents one of two processes, which are threads here.

    Args:
        rank: The number of the process.
        values: The value of each process, which all of them share.
        barrier: A barrier for both.
    """

    count = 2

    def __init__(self, rank: int, values: list[Any], barrier: threading.Barrier) -> None:
        self._rank = rank
        self._values = values
        self._barrier = barrier

    def gather(self, value: Any) -> list[Any]:
        self._values[self._rank] = value
        self._barrier.wait(LIMIT)
        found = [*self._values]
        self._barrier.wait(LIMIT)
        return found

    def broadcast(self, value: Any, source: int) -> Any:
        return self.gather(value)[source]


def segment_of(kinds: str, length: int = 5, sampled: bool = True) -> TrainingSegment:
    """Return a segment with an image ("i"), a video ("v"), both, or none."""
    image = ImageSpan("image", (PlaceholderRun(1, 1),), 9, 4)
    video = VideoSpan(2, 1, "video", (1, 2, 2), 8, 0.0, 0)
    token_ids = np.zeros(length, np.int32)
    token_ids[1:3] = 9 * ("i" in kinds), 8 * ("v" in kinds)
    mask = np.zeros(length, np.bool_)
    mask[-1] = sampled
    segment = Segment(
        token_ids=token_ids,
        loss_mask=mask,
        logprobs=np.zeros(length, np.float32),
        policy_version=np.zeros(length, np.int32),
        turns=(TurnSpan(0, length - 1, length, "stop", None),) if sampled else (),
        images=(image,) if "i" in kinds else (),
        placeholder_ids=(8, 9),
        temperature=1.0,
        processor="",
        videos=(video,) if "v" in kinds else (),
    )
    return TrainingSegment(segment, np.zeros(length, np.float32), {}, 0, 1)


def batches_of(*given: Sequence[TrainingSegment]) -> list[list[MicroBatch]]:
    """Return the micro-batches of two processes with these segments."""
    values: list[Any] = [None, None]
    barrier = threading.Barrier(2)
    policy: Any = OneEach()

    def run(rank: int) -> list[MicroBatch]:
        process: Any = Thread(rank, values, barrier)
        return micro_batches(policy, given[rank], BatchBudget(100), process)

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(run, range(2)))


def shown(batch: MicroBatch) -> set[str]:
    given: list[Any] = [*batch.own, *batch.fillers]
    segments = [each.segment for each in given]
    images, videos = (any(getattr(one, name) for one in segments) for name in ("images", "videos"))
    return {name for name, there in (("i", images), ("v", videos)) if there}


def layouts() -> Iterator[tuple[str, ...]]:
    """Yield the kinds of up to two micro-batches of a process."""
    kinds = ("t", "i", "v", "iv")
    return (parts for count in range(3) for parts in product(kinds, repeat=count))


@pytest.mark.slow
def test_all_micro_batches_show_the_same_kinds() -> None:
    """Check all pairs of processes with up to two micro-batches of text, images and videos.

    Only what is missing is filled.
    """
    for pair in product(layouts(), repeat=2):
        given = [[segment_of(kinds) for kinds in parts] for parts in pair]
        found = batches_of(*given)
        most = max(map(len, pair))
        expected = {kind for parts in pair for kinds in parts for kind in kinds} - {"t"}
        for own, batches in zip(given, found, strict=True):
            assert len(batches) == most, pair
            assert [each for batch in batches for each in batch.own] == own
            for batch in batches:
                assert batch.own or batch.fillers
                assert shown(batch) == expected, pair
                missing = expected - shown(MicroBatch(batch.own))
                assert len(batch.fillers) <= (len(missing) or not batch.own), pair


def test_filler_is_the_shortest_segment_with_a_sampled_token() -> None:
    segments = [segment_of("i", 9), segment_of("i", 7), segment_of("i", 4, sampled=False)]
    (_, (*_, last)) = batches_of(segments, [segment_of("t", 3)] * 3)
    (filler,) = last.fillers
    assert len(filler.segment) == 7


def test_step_without_sampled_tokens_has_no_micro_batches() -> None:
    assert batches_of([segment_of("i", sampled=False)], []) == [[], []]
