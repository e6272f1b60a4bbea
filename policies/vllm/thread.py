"""Defines `EngineThread`: an engine in this process, which a separate thread steps.

Requests may come from any thread or event loop. A second thread runs the image processor, so that
the engine continues to sample during that time.

Weights change between two steps. Turns in progress are interrupted first: the sampled tokens of
each are returned with their version, and the policy requests the rest. The keys and values for a
token are therefore always of the token's own version.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from visenv.errors import PolicyError
from visenv.policy import Adapter

from .engine import Engine
from .job_queue import JobQueue, JobTimer
from .request import EngineOutput, EngineRequest
from .weights import WeightUpdate

Result = TypeVar("Result")

_BETWEEN_CHECKS = 1.0
"""Seconds between two checks whether the engine's process has ended, during a wait."""

_FAREWELL = 30.0
"""Seconds that an engine gets to stop before it is abandoned."""


class EngineThread:
    """Implements `EngineClient` for an engine in this process.

    Args:
        build: Makes the engine; called on the engine's thread.
        context: Maximum number of tokens in a conversation.
        timeout: Maximum number of seconds of one step of the engine, or of processing the images of
            one prompt.
        transfer_timeout: Maximum number of seconds of a weight transfer, a sleep or a wake-up.

    Attributes:
        context: Maximum number of tokens in a conversation.
        stale: Whether the engine lacks the weights of the current version.
        dead: The error due to which it no longer samples, or None.
        left_behind: Whether the engine hangs in this process; only the end of the process frees its
            memory.

    Raises:
        PolicyError: If the engine does not start.
    """

    def __init__(
        self, build: Callable[[], Engine], context: int, timeout: float, transfer_timeout: float
    ) -> None:
        self.context = context
        self.stale = False
        self.dead: PolicyError | None = None
        self.left_behind = False
        self._timeout = timeout
        self._transfer_timeout = transfer_timeout
        self._limit = math.inf
        self._names = itertools.count()
        self._waiting: dict[str, Future[EngineOutput]] = {}
        self._running: set[str] = set()
        self._held: list[str] = []
        self._holding = False
        self._cache = threading.Lock()  # for vLLM's cache of images
        self._epoch = 0  # number of times that cache was emptied
        self._image_watch, self._step_watch = JobTimer(), JobTimer()
        self._images = JobQueue("visenv-vllm-images")
        self._steps = JobQueue("visenv-vllm-engine", lambda: bool(self._running), self._step)
        self._engine = self._call(build, math.inf)

    @property
    def version(self) -> int:
        """Return the version of the weights that the engine samples with."""
        return self._engine.version

    @property
    def engine(self) -> Engine:
        """Return the engine, which only its thread may use."""
        return self._engine

    # ------------------------------------------------------------------ for any thread

    def submit(self, request: EngineRequest) -> Future[EngineOutput]:
        """Sample a turn in the thread; cancelling the future aborts the turn."""
        future: Future[EngineOutput] = Future()
        if self.dead is not None:
            future.set_exception(self.dead)
            return future
        name = str(next(self._names))
        self._waiting[name] = future
        future.add_done_callback(partial(self._on_done, name))
        self._images.put(partial(self._render, name, request))
        return future

    def check(self) -> None:
        """Raise if the engine died or hangs."""
        if self.dead is None:
            with suppress(PolicyError):
                self._check_process()
        if self.dead is None and self._step_watch.seconds() > self._limit:
            self._die(f"hangs: a step has taken longer than {self._limit:g} s")
        if self.dead is None and self._image_watch.seconds() > self._timeout:
            self._die(f"hangs: images have taken longer than {self._timeout:g} s")
        if self.dead is not None:
            raise self.dead

    def load(self, delivery: WeightUpdate, version: int) -> None:
        """Load the weights in the thread."""
        self._call(partial(self._load, delivery, None, version), self._transfer_timeout)

    def load_adapter(self, adapter: Adapter, version: int, delivery: WeightUpdate | None) -> None:
        """Load an adapter in the thread; see `EnginePolicy.load_adapter`."""
        self._call(partial(self._load, delivery, adapter, version), self._transfer_timeout)

    def sleep(self) -> None:
        """Put the engine to sleep; turns in progress and new ones wait until it wakes."""
        self._call(self._sleep, self._transfer_timeout)

    def wake(self) -> None:
        """Wake the engine in the thread."""
        self._call(self._wake, self._transfer_timeout)

    def close(self) -> None:
        """Stop the engine; one that hangs is abandoned."""
        hangs = self._step_watch.seconds() > self._limit
        self._die("was closed")
        images_hang = self._image_watch.seconds() > self._timeout
        self._images.stop(0 if images_hang else _FAREWELL)
        if hangs:
            self._engine.kill()
            self.left_behind = self._engine.is_inside
        else:
            self._steps.put(self._engine.close)
        self._steps.stop(0 if hangs else _FAREWELL)

    def _call(self, job: Callable[[], Result], timeout: float) -> Result:
        """Run a function on the engine's thread, and wait for its result."""
        if self.dead is not None:
            raise self.dead
        done: Future[Result] = Future()
        self._steps.put(partial(self._settle, done, job, timeout))
        ends = time.monotonic() + timeout
        while not done.done():
            left = ends - time.monotonic()
            if left <= 0:
                raise self._die(f"hangs: a transfer of weights has taken longer than {timeout:g} s")
            with suppress(TimeoutError):
                done.exception(min(left, _BETWEEN_CHECKS))
            if not done.done():
                self._check_process()
        return done.result()

    def _check_process(self) -> None:
        """Raise if the engine's own process has ended, and end the call that waits for it."""
        engine = getattr(self, "_engine", None)  # absent while it starts
        if engine is not None and engine.lost:
            error = self._die("died: its process has ended")
            engine.fail_calls(error)
            raise error

    def _settle(self, done: Future[Result], job: Callable[[], Result], limit: float) -> None:
        self._limit = limit
        try:
            with self._step_watch:
                done.set_result(job())
        except Exception as error:  # noqa: BLE001 - every turn in progress must get it
            done.set_exception(error)
        self._limit = self._timeout

    def _on_done(self, name: str, future: Future[EngineOutput]) -> None:
        if future.cancelled():
            self._steps.put(partial(self._drop, name))

    def _die(self, reason: str) -> PolicyError:
        """Stop sampling, and fail all turns in progress."""
        self.dead = PolicyError(f"The vLLM engine {reason}.")
        self._running.clear()
        for name in list(self._waiting):
            self._fail(name, self.dead)
        return self.dead

    def _fail(self, name: str, error: Exception) -> None:
        future = self._waiting.pop(name, None)
        with suppress(InvalidStateError):  # it was cancelled
            if future is not None:
                future.set_exception(error)

    def _answer(self, name: str, piece: EngineOutput) -> None:
        future = self._waiting.pop(name, None)
        with suppress(InvalidStateError):
            if future is not None:
                future.set_result(piece)

    # ------------------------------------------------------------------ on the images' thread

    def _render(self, name: str, request: EngineRequest) -> None:
        with self._cache:
            if name not in self._waiting:
                return
            try:
                with self._image_watch:
                    rendered = self._engine.render(request)
            except Exception as error:  # noqa: BLE001 - the error belongs to this request
                self._fail(name, PolicyError(f"vLLM cannot read this prompt: {error}"))
                self._steps.put(self._empty_cache)
                return
            self._steps.put(partial(self._add, name, rendered, request, self._epoch))

    # ------------------------------------------------------------------ on the engine's thread

    def _add(self, name: str, rendered: Any, request: EngineRequest, epoch: int) -> None:
        if epoch != self._epoch:  # its images are no longer cached: render it again
            self._answer(name, self._nothing())
        elif self._holding:
            self._held.append(name)
        elif self.stale:
            self._fail(name, PolicyError("The engine lacks the current weights: load them."))
        else:
            self._begin(name, rendered, request)

    def _begin(self, name: str, rendered: Any, request: EngineRequest) -> None:
        try:
            with self._step_watch:
                self._engine.add(name, rendered, request)
        except Exception as error:  # noqa: BLE001 - the error belongs to this request
            self._fail(name, PolicyError(f"vLLM rejects this prompt: {error}"))
            self._empty_cache()
            return
        self._running.add(name)
        if name not in self._waiting:  # it was cancelled before it arrived
            self._drop(name)

    def _step(self) -> None:
        try:
            with self._step_watch:
                ended = self._engine.step()
        except Exception as error:  # noqa: BLE001 - every turn in progress must get it
            self._die(f"died: {error!r}")
            return
        for name, piece in ended:
            self._running.discard(name)
            self._answer(name, piece)

    def _drop(self, name: str) -> None:
        self._waiting.pop(name, None)
        if name in self._running:
            self._running.discard(name)
            self._engine.abort(name)

    def _nothing(self) -> EngineOutput:
        return EngineOutput(None, [], [], "abort", self.version)

    def _empty_cache(self) -> None:
        """Empty vLLM's cache of images, whose two halves may differ after a failure."""
        with self._cache:
            self._epoch += 1
            self._engine.forget_images()

    def _interrupt(self) -> None:
        self._running.clear()
        for name, piece in self._engine.interrupt():
            self._answer(name, piece)

    def _load(self, delivery: WeightUpdate | None, adapter: Adapter | None, version: int) -> None:
        with self._cache:
            self._epoch += 1
            self._interrupt()
            self.stale = True
            try:
                self._engine.load(delivery, adapter)
            except Exception as error:
                if self._engine.transfer.broken:
                    self._die(f"lost its trainer: {error}")
                if isinstance(error, PolicyError):
                    raise
                raise PolicyError(f"The weights could not be loaded: {error!r}") from error
            self._engine.version = version
            self.stale = False
        self._release()

    def _sleep(self) -> None:
        with self._cache:
            self._epoch += 1
            self._holding = True
            self._interrupt()
            self._engine.sleep()

    def _wake(self) -> None:
        self.stale |= self._engine.wake()
        if not self.stale:
            self._empty_cache()  # only one half contains the images of waiting turns
            self._release()

    def _release(self) -> None:
        """Submit the turns again that waited for the engine to wake."""
        self._holding = False
        for name in self._held:
            self._answer(name, self._nothing())
        self._held.clear()
