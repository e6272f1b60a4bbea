"""Runs an event loop in a daemon thread, for coroutines that outlive the caller's loop.

Deferred reward terms and asynchronous tools run here, also if the caller has no event loop. Code
that already runs in an event loop (a Jupyter cell, a collector) may call `run` as well, because the
coroutine runs in another thread.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_SECONDS_TO_STOP = 1.0
"""Seconds to wait for a loop that stops; a coroutine that blocks it must not delay the exit."""

_SECONDS_TO_CANCEL = 10.0
"""Seconds from Ctrl-C to the next interrupt of a loop that is blocked, for example by a step."""


class EventLoopThread:
    """Runs an event loop in its own daemon thread, which starts with the first coroutine.

    A forked child process starts its own thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        _loops.add(self)

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; see the function `submit` of this module."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and block until it is done; see the function `run` of this module."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError(
                f"A blocking call was made on the event loop {self._name!r}, which would wait for "
                "itself forever. Await the coroutine instead, or move the blocking call to a "
                "thread with asyncio.to_thread()."
            )
        future = self.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # has an effect only if the wait was interrupted (Ctrl-C)
            raise

    def stop(self) -> None:
        """Cancel the running coroutines, and wait briefly until they have ended."""
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_SECONDS_TO_STOP)

    def forget(self) -> None:
        """Reset the object in a forked child process, which has no copy of the thread."""
        # A reference to the parent's loop is kept. Deleting the loop here would unregister its file
        # descriptors from the epoll object that parent and child share.
        _inherited.append(self._loop)
        self.__init__(self._name)  # type: ignore[misc]

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                started = threading.Event()
                self._thread = threading.Thread(
                    target=self._serve, args=(started,), name=self._name, daemon=True
                )
                self._thread.start()
                started.wait()
            assert self._loop is not None
            return self._loop

    def _serve(self, started: threading.Event) -> None:
        with asyncio.Runner() as runner:  # its exit cancels the tasks and closes the loop
            runner.run(self._wait(started))

    async def _wait(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._stop.wait()


_loops: weakref.WeakSet[EventLoopThread] = weakref.WeakSet()
_inherited: list[asyncio.AbstractEventLoop | None] = []
_background = EventLoopThread("visenv-background")


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the background loop. Any thread may call this function.

    The coroutine sees the caller's context variables as they are now.

    Args:
        coroutine: The coroutine; nothing else may await it.

    Returns:
        A future of its result or exception. Cancelling the future cancels the coroutine. Code in
        another event loop awaits it with `asyncio.wrap_future`.
    """
    return _background.submit(coroutine)


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the background loop, and return when it waits for the first time.

    Before its first ``await``, the coroutine therefore reads the state at the time of this call.

    Args:
        coroutine: The coroutine; nothing else may await it.

    Returns:
        A future of its result or exception, as `submit` returns it.
    """
    begun = threading.Event()

    async def begin() -> T:
        task = asyncio.ensure_future(coroutine)
        await asyncio.sleep(0)  # the task runs up to its first await
        begun.set()
        return await task

    future = submit(begin())
    begun.wait()
    return future


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop, and block the calling thread until it is done.

    The caller may itself be inside a running event loop, which is blocked meanwhile.

    Args:
        coroutine: The coroutine; nothing else may await it.

    Raises:
        RuntimeError: If a coroutine on the background loop calls this function: the loop would wait
            for itself. Use ``await`` there.
        BaseException: The exception that the coroutine raised, with its traceback.
    """
    return _background.run(coroutine)


def run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop, and block until it is done.

    It works like `asyncio.run`, but also if the calling thread runs an event loop (Jupyter): then
    the new loop runs in another thread. An interrupt (Ctrl-C) cancels the coroutine. If a call
    blocks the loop, the call is interrupted after `_SECONDS_TO_CANCEL` seconds.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_without_repr(coroutine)
    other = EventLoopThread("visenv-run")
    try:
        return other.run(coroutine)
    finally:
        other.stop()


def _run_without_repr(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, whose signal handler has the task in its repr.

    Python computes this repr when it restores the handler of Ctrl-C. With the result in the task,
    it would format the arrays of all episodes (0.03 s and more).
    """
    results: list[T] = []

    async def keep_result() -> None:
        repeat()
        results.append(await coroutine)

    with _repeated_interrupts() as repeat:
        asyncio.run(keep_result())
    return results[0]


@contextmanager
def _repeated_interrupts() -> Iterator[Callable[[], None]]:
    """Interrupt an event loop of the main thread again if it does not end after an interrupt.

    The handler of `asyncio.run` cancels the task at the first interrupt, which has no effect while
    a call blocks the loop. At each later interrupt it raises `KeyboardInterrupt` in this call. The
    task first calls the yielded function, when `asyncio.run` has installed its handler.
    """
    before = signal.getsignal(signal.SIGINT)
    received = SimpleQueue[bool]()  # True for an interrupt, False for the end; `put` is reentrant
    thread = threading.Thread(target=_repeat, args=(received,), name="visenv-cancel", daemon=True)
    stack = ExitStack()

    def repeat() -> None:
        handler = signal.getsignal(signal.SIGINT)
        if handler is before or not callable(handler):
            return  # another thread, or the program handles or ignores Ctrl-C itself

        def handle(number: int, frame: FrameType | None) -> None:
            received.put(True)
            handler(number, frame)

        thread.start()
        stack.enter_context(_woken_by_signals(asyncio.get_running_loop()))
        signal.signal(signal.SIGINT, handle)

    try:
        with stack:
            yield repeat
    finally:
        if thread.ident is not None:
            signal.signal(signal.SIGINT, lambda *_: None)  # the thread may send a last interrupt
            received.put(False)
            thread.join()
            signal.signal(signal.SIGINT, before)


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake the event loop of the main thread when any thread receives a signal.

    Python runs signal handlers in the main thread, but the operating system may deliver a signal to
    another thread. An event loop that waits would then run the handler only at its next event. The
    loop is closed at the end.
    """
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        loop.add_reader(reader, reader.recv, 4096)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)


def _repeat(received: SimpleQueue[bool]) -> None:
    """Wait for an interrupt, and then send one after each `_SECONDS_TO_CANCEL` seconds."""
    waits = received.get()
    while waits:
        try:
            waits = received.get(timeout=_SECONDS_TO_CANCEL)
        except Empty:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


async def wait(future: Future[T]) -> T:
    """Wait for a future of `submit` from any event loop, including the background loop."""
    return await asyncio.wrap_future(future)


def _after_fork_in_child() -> None:
    for loop in list(_loops):
        loop.forget()


def _at_exit() -> None:
    for loop in list(_loops):
        loop.stop()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
