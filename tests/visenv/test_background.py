"""Tests the background loop: one thread per process, callable from all threads and event loops."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import ContextVar
from multiprocessing.connection import Connection

import pytest
from typing_extensions import override

from tests.waiting import LIMIT
from visenv import background


async def _thread() -> tuple[int, str]:
    await asyncio.sleep(0)
    return threading.get_ident(), threading.current_thread().name


def test_run_uses_one_daemon_thread_for_callers_of_every_thread() -> None:
    with ThreadPoolExecutor(16) as threads:
        seen = set(threads.map(lambda _: background.run(_thread()), range(64)))
    assert len(seen) == 1
    ((ident, name),) = seen
    assert ident != threading.get_ident()
    assert name == "visenv-background"
    assert sum(thread.name == name for thread in threading.enumerate()) == 1


def test_run_inside_a_running_event_loop_returns_the_value() -> None:
    async def notebook_cell() -> int:
        return background.run(asyncio.sleep(0.01, result=7))

    assert asyncio.run(notebook_cell()) == 7


def test_submit_is_awaited_in_another_loop_without_blocking_it() -> None:
    release = threading.Event()

    async def waits() -> str:
        while not release.is_set():  # noqa: ASYNC110 - the event is the other thread's
            await asyncio.sleep(0.001)
        return "done"

    async def caller() -> str:
        future = asyncio.wrap_future(background.submit(waits()))
        await asyncio.sleep(0)  # this loop still runs, and sets the event
        assert not future.done()
        release.set()
        return await future

    assert asyncio.run(caller()) == "done"


_variable: ContextVar[str] = ContextVar("_variable", default="unset")


def test_submit_gives_the_coroutine_the_context_variables_of_the_caller() -> None:
    async def read() -> str:
        return _variable.get()

    token = _variable.set("mine")
    future = background.submit(read())
    _variable.reset(token)
    assert future.result(LIMIT) == "mine"
    assert background.run(read()) == "unset"


class _OwnError(Exception):
    pass


def test_run_raises_what_the_coroutine_raised_with_its_traceback() -> None:
    raised = _OwnError("here")

    async def fails_at_this_line() -> None:
        raise raised

    with pytest.raises(_OwnError) as caught:
        background.run(fails_at_this_line())
    assert caught.value is raised
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "fails_at_this_line"


@pytest.mark.filterwarnings("error")
def test_run_on_the_background_loop_itself_is_refused() -> None:
    async def nested() -> None:
        background.run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match=r"wait for itself.*Await the coroutine"):
        background.run(nested())
    assert background.run(asyncio.sleep(0, result=1)) == 1  # the loop still runs


def test_submit_cancels_the_coroutine_when_its_future_is_cancelled() -> None:
    started, cancelled = threading.Event(), threading.Event()

    async def forever() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    future = background.submit(forever())
    assert started.wait(LIMIT)
    assert future.cancel()
    assert cancelled.wait(LIMIT)
    with contextlib.suppress(CancelledError):
        future.result(LIMIT)


def _child(connection: Connection) -> None:
    connection.send((os.getpid(), background.run(asyncio.sleep(0.01, result="child"))))
    connection.close()


def test_run_in_a_forked_child_starts_a_loop_of_its_own_and_leaves_the_parents_alone() -> None:
    background.run(asyncio.sleep(0))  # starts the parent's loop before the fork
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    child = context.Process(target=_child, args=(other,))
    child.start()
    other.close()
    assert mine.poll(LIMIT), "the child hangs"
    assert mine.recv() == (child.pid, "child")
    child.join(LIMIT)
    assert child.exitcode == 0
    assert background.run(asyncio.sleep(0.01, result="parent")) == "parent"


def _run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_import_starts_no_thread() -> None:
    done = _run("import threading, visenv.background; print(threading.active_count())")
    assert (done.stdout.strip(), done.stderr) == ("1", "")


@pytest.mark.slow
def test_exit_does_not_wait_for_a_coroutine_and_warns_of_nothing() -> None:
    done = _run(
        "import asyncio; from visenv import background\n"
        "background._SECONDS_TO_STOP = 600.0  # a slow loop would leave a warning\n"
        "background.submit(asyncio.sleep(3600)); background.run(asyncio.sleep(0)); print('end')"
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "end", "")


def test_run_here_formats_no_result() -> None:
    """Check that no repr of the result, for example of episodes, is computed."""
    formatted: list[int] = []

    class Result:
        @override
        def __repr__(self) -> str:
            formatted.append(1)
            return "result"

    async def make() -> Result:
        await asyncio.sleep(0)
        return Result()

    assert isinstance(background.run_here(make()), Result)
    assert formatted == []
