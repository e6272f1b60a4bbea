"""Tests the threads of steps: they are reused, limited, and do not keep a process alive."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from tests.programs import run_python
from tests.waiting import LIMIT, wait_until
from visenv.rollout.executor import StepThreads


def test_calls_run_at_the_same_time_up_to_the_limit() -> None:
    threads = StepThreads(3)
    started, gate = threading.Semaphore(0), threading.Event()

    def wait() -> str:
        started.release()
        gate.wait(LIMIT)
        return threading.current_thread().name

    futures = [threads.submit(wait) for _ in range(4)]
    for _ in range(3):
        assert started.acquire(timeout=LIMIT)
    assert [future.running() for future in futures] == [True] * 3 + [False]
    gate.set()
    assert {future.result(LIMIT) for future in futures} == {"visenv-step"}
    threads.shutdown()


def test_free_thread_is_used_again() -> None:
    threads = StepThreads(8)
    first = threads.submit(threading.get_ident).result(LIMIT)
    wait_until(lambda: threads._free == 1)
    assert threads.submit(threading.get_ident).result(LIMIT) == first
    threads.shutdown()


def test_exception_is_raised_where_the_result_is_awaited() -> None:
    threads = StepThreads(1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(LIMIT)
    assert threads.submit(lambda: 1).result(LIMIT) == 1
    threads.shutdown()


def test_shutdown_cancels_waiting_calls_and_ends_the_threads() -> None:
    threads = StepThreads(1)
    gate = threading.Event()
    before = set(threading.enumerate())
    running: Future[Any] = threads.submit(lambda: gate.wait(LIMIT))
    wait_until(running.running)
    (thread,) = set(threading.enumerate()) - before
    waiting = threads.submit(lambda: 1)
    threads.shutdown()
    assert waiting.cancelled()
    gate.set()
    assert running.result(LIMIT)
    thread.join(LIMIT)
    assert not thread.is_alive()


_HANGS = """
import asyncio, signal, threading
from tests.algos.echo import Echo
from tests.visenv.rollout.test_lockstep import Batching
from visenv import background
from visenv.rollout import Collector, EpisodeSpec

signal.signal(signal.SIGINT, signal.default_int_handler)

class Hanging(Echo):
    waits = True

    def step(self, action):
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        background.run(asyncio.Event().wait())

try:
    Collector(Hanging, Batching()).episodes([EpisodeSpec(1)])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.slow
def test_tool_that_never_replies_does_not_keep_an_interrupted_process_alive() -> None:
    done = run_python("-c", _HANGS)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
