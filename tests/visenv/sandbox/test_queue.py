"""Tests the queue of programs: fair to owners, with a deadline, and with statistics of waits."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator

import pytest

from tests.waiting import LIMIT, until, wait_until
from visenv.errors import ConfigurationError, ServiceError
from visenv.sandbox import Execution, Program, Sandbox
from visenv.sandbox.queue import FairQueue, _Turn


def later(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_owner_of_short_programs_is_not_behind_all_of_a_long_one() -> None:
    """Check that an owner need not wait a second for twenty programs of 50 ms of another owner."""
    queue, order = FairQueue(1, 60.0), list[Hashable]()

    def run(owner: str, seconds: float) -> None:
        with queue.worker(owner):
            order.append(owner)
            time.sleep(seconds)

    with queue.worker("greedy"):
        threads = [later(lambda: run("greedy", 0.05)) for _ in range(20)]
        wait_until(lambda: len(queue._waiting) == 20)
        threads.append(later(lambda: run("honest", 0.0)))
        wait_until(lambda: len(queue._waiting) == 21)
    for thread in threads:
        thread.join()
    assert order.index("honest") <= 3


def test_tags_worked_by_hand() -> None:
    """Compute the tags: A has run 4 s and B 1 s, each while the other waited; then A and B wait.

    A: start 0, finish 4; two owners wanted to run, so the virtual time is 4 / 2 = 2.
    B: start 2, finish 3; the virtual time is 2 + 1 / 2 = 2.5. B has the smaller tag, 3 against 4.
    """
    queue = FairQueue(1, 60.0)
    queue._free = 0
    a, b = _Turn("A"), _Turn("B")
    queue._waiting = [b]
    queue._take_back("A", 0.0, 4.0)
    assert (queue._finish["A"], b.start, queue._virtual) == (4.0, 2.0, 2.0)
    queue._waiting = [a]
    queue._free = -1  # no worker is given now
    queue._take_back("B", 2.0, 1.0)
    assert (queue._finish["B"], queue._virtual) == (3.0, 2.5)
    b = _Turn("B")
    queue._waiting, queue._free = [a, b], 1
    queue._serve()
    assert b.ready.done()
    assert not a.ready.done()


def test_program_that_gets_no_worker_in_time_is_a_service_error() -> None:
    queue = FairQueue(1, 0.05)
    with queue.worker("a"):
        with pytest.raises(ServiceError, match="no worker was free within"):
            queue.worker("b").__enter__()
        assert queue.waits.given_up == 1
    with queue.worker("b"):
        pass
    assert queue.waits.programs == 2


def test_waiting_is_measured() -> None:
    queue = FairQueue(1, 60.0)

    def run() -> None:
        with queue.worker("b"):
            pass

    begun = time.monotonic()
    with queue.worker("a"):
        thread = later(run)
        wait_until(lambda: queue._waiting)
        waiting = time.monotonic()
        time.sleep(0.1)
        waited = time.monotonic() - waiting
    thread.join()
    programs, seconds, longest, given_up = queue.waits
    assert (programs, given_up) == (2, 0)
    assert waited <= longest <= seconds <= time.monotonic() - begun


@pytest.fixture
def interrupt() -> Iterator[Callable[[FairQueue], threading.Thread]]:
    """Yield a function that interrupts the main thread while it waits, as Ctrl-C does."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)

    def send(queue: FairQueue) -> None:
        wait_until(lambda: queue._waiting)
        os.kill(os.getpid(), signal.SIGUSR1)

    yield lambda queue: later(lambda: send(queue))
    signal.signal(signal.SIGUSR1, before)


def test_interrupted_wait_loses_no_worker(
    interrupt: Callable[[FairQueue], threading.Thread],
) -> None:
    queue, may_end = FairQueue(1, 60.0), threading.Event()

    def run() -> None:
        with queue.worker("a"):
            may_end.wait(LIMIT)

    running = later(run)
    wait_until(lambda: queue._free == 0)
    sent = interrupt(queue)
    with pytest.raises(KeyboardInterrupt):
        queue.worker("b").__enter__()
    may_end.set()
    running.join()
    sent.join()
    assert (queue._free, queue._waiting) == (1, [])
    assert (queue.waits.programs, queue.waits.given_up) == (1, 0)


def test_interrupt_after_the_worker_was_given_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    queue = FairQueue(1, 60.0)
    with monkeypatch.context() as patch:
        patch.setattr("visenv.sandbox.queue.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.worker("a").__enter__()
    assert queue._free == 1


def test_owners_that_are_even_are_forgotten() -> None:
    queue = FairQueue(2, 1.0)
    for owner in range(100):
        with queue.worker(owner):
            pass
    assert not queue._finish


class Slow:
    """Runs programs that wait until `may_end` is set; `runs` is set when the first one runs."""

    def __init__(self) -> None:
        self.runs = threading.Event()
        self.may_end = threading.Event()

    def start(self) -> None:
        return

    def run(self, program: Program) -> Execution:
        self.runs.set()
        self.may_end.wait(LIMIT)
        return Execution("ok")

    def close(self) -> None:
        return


def test_sandbox_has_a_deadline_and_reports_the_wait() -> None:
    backend = Slow()
    sandbox = Sandbox(backend, workers=1, wait_seconds=0.1)
    running = later(lambda: sandbox.run("1"))
    assert backend.runs.wait(LIMIT)
    with pytest.raises(ServiceError, match="no worker was free"):
        sandbox.run("2")
    backend.may_end.set()
    running.join()
    assert (sandbox.waits.programs, sandbox.waits.given_up) == (1, 1)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), threading.TIMEOUT_MAX * 2])
def test_time_that_cannot_be_waited_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigurationError, match="wait_seconds"):
        Sandbox(wait_seconds=seconds)


class Recording:
    """Runs programs when `may_run` is set, and records their order."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.running = self.most = 0
        self.may_run = threading.Event()

    def start(self) -> None:
        return

    def run(self, program: Program) -> Execution:
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(program.code)
        self.may_run.wait(LIMIT)
        self.running -= 1
        return Execution("ok", result=program.code)

    def close(self) -> None:
        return


def test_coroutines_share_workers_fairly_without_a_thread_each() -> None:
    """Check that the program of the honest owner is requested last, but runs among the first."""
    backend = Recording()

    async def ask(sandbox: Sandbox) -> int:
        waiting = sandbox._queue._waiting
        greedy = [asyncio.create_task(sandbox.run_async("many", owner="greedy")) for _ in range(20)]
        await until(lambda: backend.running and len(waiting) == 19)
        honest = asyncio.create_task(sandbox.run_async("one", owner="honest"))
        await until(lambda: len(waiting) == 20)
        backend.may_run.set()
        assert (await honest).result == "one"
        threads = threading.active_count()
        await asyncio.gather(*greedy)
        return threads

    before = threading.active_count()
    with Sandbox(backend, workers=1) as sandbox:
        assert asyncio.run(ask(sandbox)) <= before + 1
        programs, seconds, longest, given_up = sandbox.waits
    assert backend.order.index("one") <= 2
    assert backend.most == 1
    assert (programs, given_up) == (21, 0)
    assert 0 < longest < seconds


def test_coroutines_have_the_deadline_of_threads() -> None:
    backend = Slow()

    async def ask(sandbox: Sandbox) -> None:
        running = asyncio.create_task(sandbox.run_async("1"))
        await until(backend.runs.is_set)
        try:
            with pytest.raises(ServiceError, match="no worker was free"):
                await sandbox.run_async("2")
        finally:
            backend.may_end.set()
        assert (await running).status == "ok"

    with Sandbox(backend, workers=1, wait_seconds=0.1) as sandbox:
        asyncio.run(ask(sandbox))
        assert (sandbox.waits.programs, sandbox.waits.given_up) == (1, 1)


def test_cancelled_coroutine_holds_its_worker_until_its_program_ends() -> None:
    backend = Recording()

    async def ask(sandbox: Sandbox) -> None:
        task = asyncio.create_task(sandbox.run_async("cancelled"))
        await until(lambda: backend.order)
        task.cancel()
        second = asyncio.create_task(sandbox.run_async("second"))
        await until(lambda: sandbox._queue._waiting)
        backend.may_run.set()
        await second

    with Sandbox(backend, workers=1) as sandbox:
        asyncio.run(ask(sandbox))
        assert sandbox.run("third").status == "ok"
    assert (backend.order, backend.most) == (["cancelled", "second", "third"], 1)


@pytest.mark.parametrize("given", [False, True])
def test_coroutine_that_is_cancelled_in_the_queue_loses_no_worker(given: bool) -> None:
    """Check both moments: with `given`, the task has the worker, but has not resumed yet."""

    async def cancel(queue: FairQueue) -> None:
        give_back = await queue.acquire("a")
        waiting = asyncio.create_task(queue.acquire("b"))
        await asyncio.sleep(0)
        if given:
            give_back()
            assert queue._free == 0
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not given:
            give_back()

    queue = FairQueue(1, 60.0)
    asyncio.run(cancel(queue))
    assert (queue._free, queue._waiting) == (1, [])
    assert queue.waits.given_up == 0
