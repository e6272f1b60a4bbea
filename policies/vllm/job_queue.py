"""Defines `JobQueue`, a thread that runs jobs in order, and `JobTimer`, which times them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import TracebackType

Job = Callable[[], None]


class JobQueue:
    """Runs jobs in the order of submission; between jobs, repeats a function while it is needed.

    The thread is a daemon, so that a thread that hangs does not prevent the process from ending.

    Args:
        name: Name of the thread.
        more: Returns whether `repeat` has something to do.
        repeat: Called repeatedly while no job waits. Like a job, it must not raise.
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
        """Add a job; any thread may call this."""
        self._jobs.put(job)

    def stop(self, timeout: float) -> None:
        """End the thread after its remaining jobs; wait for that at most `timeout` seconds."""
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
            del job  # release its data while waiting for the next job


class JobTimer:
    """Measures the duration of a block, one at a time, for other threads."""

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
        """Return the duration of the current block so far in seconds; 0 if there is none."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since
