"""Tests the batching of requests."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.transformers import generate


class Recorder:
    """Records its batches; fails for those that hold a negative number."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, items: Sequence[int]) -> None:
        self.batches.append(list(items))
        if min(items) < 0:
            raise ValueError("negative")


def submit_all(batcher: Any, items: Sequence[int]) -> list[Any]:
    async def run() -> list[Any]:
        return await asyncio.gather(*map(batcher.submit, items), return_exceptions=True)

    return asyncio.run(run())


def test_requests_made_together_run_together_in_order() -> None:
    recorder = Recorder()
    submit_all(generate.Batcher(recorder, 8), [3, 1, 2])
    assert recorder.batches == [[3, 1, 2]]


def test_batches_do_not_exceed_the_size() -> None:
    recorder = Recorder()
    submit_all(generate.Batcher(recorder, 2), [1, 2, 3, 4, 5])
    assert recorder.batches == [[1, 2], [3, 4], [5]]


def test_requests_that_follow_at_once_are_waited_for() -> None:
    recorder = Recorder()
    batcher = generate.Batcher(recorder, 8)

    async def twice(item: int) -> None:
        await batcher.submit(item)
        await batcher.submit(10 * item)

    async def run() -> None:
        await asyncio.gather(*map(twice, [1, 2, 3]))

    asyncio.run(run())
    assert recorder.batches == [[1, 2, 3], [10, 20, 30]]


def test_session_that_waits_for_a_tool_does_not_hold_up_the_others() -> None:
    recorder = Recorder()
    batcher = generate.Batcher(recorder, 8)
    tool = asyncio.Event()

    async def slow() -> None:
        await tool.wait()
        await batcher.submit(9)

    async def quick() -> None:
        await batcher.submit(1)
        tool.set()

    async def run() -> None:
        await asyncio.gather(slow(), quick())

    asyncio.run(run())
    assert recorder.batches == [[1], [9]]


def test_batch_that_fails_raises_in_all_its_sessions_and_the_next_one_runs() -> None:
    recorder = Recorder()
    batcher = generate.Batcher(recorder, 2)
    failed = submit_all(batcher, [1, -2, 3])
    assert [type(one) for one in failed] == [ValueError, ValueError, type(None)]
    assert recorder.batches == [[1, -2], [3]]


def test_cancelled_request_is_left_out() -> None:
    recorder = Recorder()
    batcher = generate.Batcher(recorder, 8)

    async def run() -> None:
        tasks = [asyncio.create_task(batcher.submit(item)) for item in (1, 2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
    assert recorder.batches == [[2]]


def test_request_canceled_while_its_batch_runs_does_not_harm_the_others() -> None:
    tasks: list[asyncio.Task[None]] = []

    def interrupted(items: Sequence[int]) -> None:
        tasks[0].cancel()  # like Ctrl-C from a signal handler

    async def run() -> list[Any]:
        batcher = generate.Batcher(interrupted, 8)
        tasks.extend(asyncio.create_task(batcher.submit(item)) for item in (1, 2))
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second = asyncio.run(run())
    assert isinstance(first, asyncio.CancelledError)
    assert second is None


def test_batcher_serves_one_event_loop_after_another() -> None:
    recorder = Recorder()
    batcher = generate.Batcher(recorder, 8)
    submit_all(batcher, [1])
    submit_all(batcher, [2])
    assert recorder.batches == [[1], [2]]


def test_ctrl_c_in_a_batch_leaves_no_traceback_behind(caplog: pytest.LogCaptureFixture) -> None:
    def run(_: Sequence[int]) -> None:
        raise KeyboardInterrupt

    async def ask() -> None:
        await generate.Batcher(run, 4).submit(1)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ask())
    gc.collect()  # asyncio reports an unretrieved exception when its task is collected
    assert "never retrieved" not in caplog.text
