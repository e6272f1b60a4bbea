"""Defines the sandbox, which runs Python that a model wrote, from any thread or coroutine."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.sandbox import forks
from visenv.sandbox.backend import OUTPUT_IMAGE, Execution, Program, SandboxBackend, SandboxLimits
from visenv.sandbox.handoff import SharedImage
from visenv.sandbox.local import LocalBackend
from visenv.sandbox.queue import FairQueue, QueueWaits
from visenv.types import Image

WAIT_SECONDS = 120.0
"""Longest time that a program waits for a worker by default."""


class Sandbox:
    r"""Runs untrusted Python with images in and out.

    Any number of threads may call `run`, and any number of coroutines `run_async`. At most
    `workers` programs run at a time; the others wait in one queue (`visenv.sandbox.queue`), so that
    waiting does not count towards the time limit of a program. Owners share the workers fairly, and
    no program waits longer than `wait_seconds`. Nothing remains of a program after its end, and
    programs share no state. A sandbox can be pickled, and used in forked children, where it starts
    again.

        with Sandbox() as sandbox:
            execution = sandbox.run(
                "import cv2\nimage = cv2.imread('path_to_input_image.jpg')\n"
                "cv2.imwrite('path_to_output_image.jpg', cv2.rotate(image, cv2.ROTATE_180))",
                images={"path_to_input_image.jpg": Image.from_file("photo.jpg")},
            )
        execution.status, execution.text, execution.image

    Args:
        backend: The backend that runs the programs; by default processes of this machine.
        limits: Limits of each program, unless `run` gets others.
        workers: Programs that run at the same time; by default the number of CPUs.
        wait_seconds: Longest time that a program waits for a worker.

    Raises:
        ConfigurationError: If `workers` is less than 1, or `wait_seconds` is not above 0 and at
            most `threading.TIMEOUT_MAX`.
    """

    def __init__(
        self,
        backend: SandboxBackend | None = None,
        *,
        limits: SandboxLimits | None = None,
        workers: int | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        if not 0 < wait_seconds <= threading.TIMEOUT_MAX:
            raise ConfigurationError(
                f"wait_seconds must be above 0 and at most {threading.TIMEOUT_MAX:g}, the longest "
                f"time that a thread can wait; got {wait_seconds!r}."
            )
        if workers is not None and workers < 1:
            raise ConfigurationError(f"A sandbox needs at least 1 worker, got {workers}.")
        self.backend = LocalBackend() if backend is None else backend
        self.limits = SandboxLimits() if limits is None else limits
        self.workers = len(os.sched_getaffinity(0)) if workers is None else workers
        self.wait_seconds = wait_seconds
        self.after_fork()
        forks.watch(self)

    def after_fork(self) -> None:
        """Reset to a state in which every worker is free; the backend resets itself."""
        self._queue = FairQueue(self.workers, self.wait_seconds)
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the backend before the first program, and check that programs can run.

        Raises:
            ConfigurationError: If this machine cannot run programs safely.
            ServiceError: If the service that runs the programs cannot be reached.
        """
        self.backend.start()

    def run(
        self,
        code: str,
        images: Mapping[str, Image | SharedImage | bytes] | None = None,
        *,
        output: str = OUTPUT_IMAGE,
        limits: SandboxLimits | None = None,
        owner: Hashable = None,
    ) -> Execution:
        """Run a program and wait for it.

        All behavior of the program is in the returned `Execution`.

        Args:
            code: Python code; ``cv2``, ``np`` and PIL's ``Image`` need not be imported.
            images: Images by file name (``"path_to_input_image.jpg"``) or by variable name
                (``"image"``); see `Program`.
            output: File name of the output image.
            limits: Limits that replace those of the sandbox.
            owner: The owner of the program; all waiting owners get the same share of time.

        Raises:
            ConfigurationError: If a name is invalid, or this machine cannot run programs safely.
            ImageError: If a passed image cannot be decoded.
            ServiceError: If the service that runs programs failed beyond retries, or no worker was
                free before the deadline.
        """
        program = Program(code, dict(images or {}), output, limits or self.limits)
        with self._queue.worker(owner):
            return self.backend.run(program)

    async def run_async(
        self,
        code: str,
        images: Mapping[str, Image | SharedImage | bytes] | None = None,
        *,
        output: str = OUTPUT_IMAGE,
        limits: SandboxLimits | None = None,
        owner: Hashable = None,
    ) -> Execution:
        """Run a program as `run` does, without blocking the event loop.

        If its coroutine is cancelled, a program that runs keeps its worker until it ends, at the
        latest at its limit.

        Raises:
            ConfigurationError, ImageError, ServiceError: As `run`.
        """
        program = Program(code, dict(images or {}), output, limits or self.limits)
        give_back = await self._queue.acquire(owner)
        try:
            running = self._submit(program)
        except BaseException:
            give_back()
            raise
        running.add_done_callback(lambda _: give_back())
        return await asyncio.wrap_future(running)

    @property
    def waits(self) -> QueueWaits:
        """Return statistics of the time that programs waited for a worker, in this process."""
        return self._queue.waits

    def close(self) -> None:
        """Kill the programs that run and end the backend; a later `run` starts it again."""
        with self._lock:
            executor, self._executor = self._executor, None
        self.backend.close()
        if executor is not None:
            executor.shutdown(cancel_futures=True)

    def _submit(self, program: Program) -> Future[Execution]:
        """Run a program that has a worker, in a thread; there is one thread for each worker."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self.workers, "visenv-sandbox")
            return self._executor.submit(self.backend.run, program)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (self.backend, self.limits, self.workers, self.wait_seconds))


@cache
def shared_sandbox() -> Sandbox:
    """Return the default sandbox, which all environments of this process share."""
    return Sandbox()


def _rebuilt(
    backend: SandboxBackend, limits: SandboxLimits, workers: int, wait_seconds: float
) -> Sandbox:
    return Sandbox(backend, limits=limits, workers=workers, wait_seconds=wait_seconds)
