"""Defines the base classes of backends, which answer the requests of a scorer."""

from __future__ import annotations

import asyncio
import atexit
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.registration import load
from visenv.scorers.request import ScoreRequest
from visenv.scorers.retry import TransientError

T = TypeVar("T")

_SECONDS_TO_FINISH = 5.0


@dataclass(frozen=True)
class ServiceLimits:
    """Defines how a service sends requests to its backend; every field is an option of `Scorer`.

    Attributes:
        max_batch_size: Maximum number of requests in one batch.
        max_delay: Maximum number of seconds that a request waits for others to fill its batch.
        max_concurrency: Maximum number of batches in flight.
        timeout: Time limit for one batch in seconds, without the time that it waits for
            `max_concurrency`.
        retries: Maximum number of further attempts after a temporary failure (`TransientError`, a
            time-out).
        requests_per_minute: Rate limit in requests, or None.
        tokens_per_minute: Rate limit in estimated tokens, including replies, or None.
        memory_bytes: Maximum size of the cache in memory.
    """

    max_batch_size: int = 1
    max_delay: float = 0.0
    max_concurrency: int = 1
    timeout: float = 120.0
    retries: int = 0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    memory_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if min(self.max_batch_size, self.max_concurrency) < 1 or self.timeout <= 0:
            raise ConfigurationError(
                "Expected max_batch_size >= 1, max_concurrency >= 1 and timeout > 0, got "
                f"{self.max_batch_size}, {self.max_concurrency} and {self.timeout}."
            )
        if min(self.max_delay, self.retries, self.memory_bytes) < 0:
            raise ConfigurationError(
                "max_delay, retries and memory_bytes must be at least 0, got "
                f"{self.max_delay}, {self.retries} and {self.memory_bytes}."
            )
        rates = (self.requests_per_minute, self.tokens_per_minute)
        if any(rate is not None and rate <= 0 for rate in rates):
            raise ConfigurationError(
                "requests_per_minute and tokens_per_minute must be above 0, or None for no limit, "
                f"got {self.requests_per_minute} and {self.tokens_per_minute}."
            )


class ScorerBackend(ABC):
    """Defines a model or a server that answers requests.

    The constructor takes the backend's options and must be fast.

    Attributes:
        requests: The types of requests that the backend answers.
        known_texts: Values of options that a received file may choose, such as the names of
            models that visenv uses by default (`visenv.received`).
        main_option: The most important option, usually the model; part of a scorer's name.
        transport_options: Options that do not change a value, for example the variable of an API
            key; they are not part of cache keys.
        limits: The default limits; options with the same names replace them.
        shared_with_children: Whether worker processes send their requests to the process that
            started them, and never build this backend themselves. True for models.
        batch_invariant: Whether, if `deterministic` is set, the answer to a request does not depend
            on its batch. If False, a deterministic service sends one request at a time.
        deterministic: Set by the service before the first request.
    """

    requests: ClassVar[tuple[type[ScoreRequest], ...]] = (ScoreRequest,)
    known_texts: ClassVar[Collection[str]] = ()
    main_option: ClassVar[str] = ""
    transport_options: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[ServiceLimits] = ServiceLimits()
    shared_with_children: ClassVar[bool] = False
    batch_invariant: ClassVar[bool] = False
    deterministic: bool = False

    @property
    @abstractmethod
    def model(self) -> str:
        """Return the name of the model, which is part of verdicts."""

    @property
    def version(self) -> str:
        """Return the other facts that determine the values: package versions, weights.

        Part of cache keys.
        """
        return ""

    def tokens(self, request: ScoreRequest) -> int:
        """Return the approximate number of tokens of a request, for the rate limit."""
        return 0

    @abstractmethod
    async def score_batch(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        """Return one value for each request, in order; runs on the event loop of scorers.

        Raises:
            TransientError: If the batch may succeed later.
            RefusedError: If the batch would fail again.
        """

    def close(self) -> None:  # noqa: B027  most backends hold nothing
        """Release the resources of the backend."""


class InProcessBackend(ScorerBackend):
    """Computes values in this process, in a separate thread.

    A time-out cannot stop a computation. Until the computation ends, further batches fail with a
    `TransientError`.
    """

    limits = ServiceLimits(max_batch_size=16, max_delay=0.002, timeout=600.0)
    shared_with_children = True

    def __init__(self) -> None:
        self._thread = ModelThread()
        self._loaded = False

    def load(self) -> None:
        """Load the model; called once, in the thread, before the first batch."""

    @abstractmethod
    def compute(self, requests: Sequence[Any]) -> Sequence[Any]:
        """Return one value for each request, in order; called in the thread."""

    @override
    async def score_batch(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        """Compute the values in the thread."""
        return await self._thread.run(lambda: self._load_and_compute(requests))

    @override
    def close(self) -> None:
        """Stop the thread of the model."""
        self._thread.close()

    def _load_and_compute(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        if not self._loaded:
            self.load()
            self._loaded = True
        return self.compute(requests)


class ModelThread:
    """Runs one function at a time in a daemon thread.

    `ThreadPoolExecutor` is unsuitable: at exit the interpreter waits for its threads, and a judge
    that hangs would prevent the exit.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._jobs = queue.SimpleQueue()
        self._busy = False
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Return the result of the function.

        Raises:
            TransientError: If the thread still runs a function that timed out.
            BaseException: The exception of the function.
        """
        if self._busy:
            raise TransientError("still computing a batch that timed out")
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="visenv-model", daemon=True)
            self._thread.start()
            _threads.add(self)
        self._busy = True
        future: Future[T] = Future()
        self._jobs.put((function, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """End the thread after its current function, without waiting for it."""
        self._jobs.put(None)

    def finish(self, seconds: float) -> None:
        """Wait until the thread has ended; native code must end before the interpreter."""
        self.close()
        if self._thread is not None:
            self._thread.join(seconds)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            if not future.set_running_or_notify_cancel():
                self._busy = False
                continue
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001  it reaches who waits
                self._busy = False
                future.set_exception(error)
            else:
                self._busy = False
                future.set_result(result)


_threads: weakref.WeakSet[ModelThread] = weakref.WeakSet()


@atexit.register
def _finish_threads() -> None:
    for thread in list(_threads):
        thread.finish(_SECONDS_TO_FINISH)


def backend_class(name: str) -> type[ScorerBackend]:
    """Return the class of a backend.

    Raises:
        UnknownNameError: If there is no backend with that name.
        ConfigurationError: If the object with that name is not a backend.
    """
    made = load("scorer", name)
    if not (isinstance(made, type) and issubclass(made, ScorerBackend)):
        raise ConfigurationError(
            f"The scorer {name!r} must be a subclass of ScorerBackend, got {made!r}."
        )
    return made
