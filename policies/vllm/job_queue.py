"""JobQueue: a thread that does jobs one after another. JobTimer: how long the present one takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import TracebackType

Job = Callable[[], None]


class JobQueue:
    """Runs jobs in the order they came; between them it repeats one, while there is one.

    The thread is a daemon: one that hangs does not keep the process from ending.

    Args:
        name: Of the thread.
        more: Whether `repeat` has something to do.
        repeat: Done over and over while no job waits. Like a job, it must not raise.
    """

    def __init__(
        self,
        name: str,
        more: Callable[[], bool] = lambda: False,
        repeat: Job = lambda: None,
    ) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._more = more
        self._repeat = repeat
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Have a job done; any thread may call."""
        self._jobs.put(job)

    def stop(self, timeout: float) -> None:
        """End the thread after the jobs it has; wait for that at most `timeout` seconds."""
        self._jobs.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            job: Job | None
            try:
                job = self._jobs.get(block=not self._more())
            except Empty:
                job = self._repeat
            if job is None:
                return
            job()
            del job  # what it refers to may be large, and the next may be long in coming


class JobTimer:
    """Times what is done inside it, one thing at a time, for other threads to look at."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._since = None

    def seconds(self) -> float:
        """Return how long the present call has taken so far; 0 if there is none."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since
