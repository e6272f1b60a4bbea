"""One event loop in a daemon thread, for coroutines that outlive or span the caller's own loop.

Scorers and deferred reward terms run here, so that requests of episodes from different threads and
event loops meet in one place. Code that already runs in an event loop (a Jupyter cell, a collector)
may call `run` as well, because the coroutine runs in the other thread.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class _Background:
    """The thread and its event loop; the thread starts with the first coroutine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                started = threading.Event()
                self._thread = threading.Thread(
                    target=self._serve, args=(started,), name="visenv-background", daemon=True
                )
                self._thread.start()
                started.wait()
            assert self._loop is not None
            return self._loop

    def is_current_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """Cancel what still runs; wait briefly, since a blocked coroutine must not hold up exit."""
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout=1.0)

    def _serve(self, started: threading.Event) -> None:
        with asyncio.Runner() as runner:  # its exit cancels the tasks and closes the loop
            runner.run(self._wait(started))

    async def _wait(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._stop.wait()


_background = _Background()
# The parent's loop stays referenced in a forked child. Collecting the loop there would unregister
# its file descriptors from the epoll object that parent and child share.
_inherited: list[_Background] = []


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the background loop. Any thread may call this function.

    The coroutine sees the caller's context variables as they are now.

    Args:
        coroutine: The coroutine; nothing else may await it.

    Returns:
        A future of its result or exception. Cancelling the future cancels the coroutine. Code in
        another event loop awaits it with `asyncio.wrap_future`.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _background.loop())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop, and block the calling thread until it is done.

    The caller may itself be inside a running event loop, which is blocked meanwhile.

    Args:
        coroutine: The coroutine; nothing else may await it.

    Raises:
        RuntimeError: If a coroutine on the background loop calls this function: the loop would wait
            for itself. Use ``await`` there.
        BaseException: What the coroutine raised, with its traceback.
    """
    if _background.is_current_thread():
        coroutine.close()
        raise RuntimeError(
            "visenv.background.run() was called on the background loop, which would wait for "
            "itself forever. Await the coroutine instead, or move the blocking call to a thread "
            "with asyncio.to_thread()."
        )
    future = submit(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # has no effect unless the wait itself was interrupted, as by Ctrl-C
        raise


def run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of its own, and block until it is done.

    It works like `asyncio.run`, also where the calling thread runs an event loop (Jupyter): then
    the new loop runs in another thread. An interrupt (Ctrl-C) cancels the coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    other = _Background()
    future = asyncio.run_coroutine_threadsafe(coroutine, other.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # has no effect unless the wait itself was interrupted
        raise
    finally:
        other.stop()


async def wait(future: Future[T]) -> T:
    """Wait for a future of `submit` from any event loop, the background loop included."""
    return await asyncio.wrap_future(future)


def _forget_parent() -> None:
    global _background  # noqa: PLW0603 - a fork copies the process, and its thread is not copied
    _inherited.append(_background)
    _background = _Background()


def _stop() -> None:
    _background.stop()


os.register_at_fork(after_in_child=_forget_parent)
atexit.register(_stop)
