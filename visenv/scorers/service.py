"""Implements the shared instance that answers the requests of all equal handles in a process."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aiolimiter import AsyncLimiter

from visenv.errors import ConfigurationError, ServiceError, VisenvError
from visenv.scorers.backend import ScorerBackend, ServiceLimits
from visenv.scorers.batching import MicroBatcher
from visenv.scorers.cache import DiskCache, MemoryCache
from visenv.scorers.request import ScoreRequest
from visenv.scorers.retry import RefusedError, TransientError, retried
from visenv.scorers.values import canonical, normalized

LIMIT_NAMES = frozenset(field.name for field in dataclasses.fields(ServiceLimits))


class Verdict(NamedTuple):
    """Represents the answer of a scorer.

    Attributes:
        value: The value, JSON-like, which may contain NumPy arrays and bytes
            (`visenv.scorers.values`).
        model: The model that gave it.
        digest: The digest of the request.
    """

    value: Any
    model: str
    digest: str


@dataclass
class ServiceCounts:
    """Counts the work of a service so far, in requests except for `batches`.

    Attributes:
        requests: Requests that were not answered from memory immediately.
        memory_hits: Requests answered from memory.
        disk_hits: Requests answered from the cache on disk.
        joined: Requests that waited for an equal request.
        sent: Requests sent to the backend, including retries.
        batches: Batches that the backend received.
    """

    requests: int = 0
    memory_hits: int = 0
    disk_hits: int = 0
    joined: int = 0
    sent: int = 0
    batches: int = 0


class Service(Protocol):
    """Defines an object that answers the requests of a handle, in this or in the parent process."""

    def recall(self, digest: str) -> Verdict | None:
        """Return the verdict if it is in memory; any thread may call this method."""
        ...

    async def score(self, request: ScoreRequest, digest: str) -> Verdict:
        """Return the verdict; runs on the event loop of scorers."""
        ...

    async def counts(self) -> ServiceCounts:
        """Return the counts of the instance so far."""
        ...

    def close(self) -> None:
        """Release the resources of the instance."""
        ...


class ScorerService:
    """Answers the requests of all equal handles of this process, on the event loop of scorers.

    The answer comes from the first of these that has it: the memory, an equal request that is in
    flight, the cache on disk, the backend.

    Args:
        name: The scorer's name, for error messages.
        made: The backend's class.
        options: The options of the backend, and of `ServiceLimits`.
        deterministic: Whether the answer to a request must not depend on its batch.
        cache_dir: The folder of the cache on disk, or None.

    Raises:
        ConfigurationError: If an option has an invalid value.
    """

    def __init__(
        self,
        name: str,
        made: type[ScorerBackend],
        options: Mapping[str, Any],
        *,
        deterministic: bool,
        cache_dir: str | None,
    ) -> None:
        self.name = name
        limits = {key: value for key, value in options.items() if key in LIMIT_NAMES}
        own = {key: value for key, value in options.items() if key not in LIMIT_NAMES}
        try:
            self.limits = dataclasses.replace(made.limits, **limits)
            self.backend = made(**own)
        except TypeError as error:
            raise ConfigurationError(f"The scorer {name!r}: {error}") from error
        self.backend.deterministic = deterministic
        alone = deterministic and not made.batch_invariant
        self._batcher = MicroBatcher(
            self._score_batch,
            1 if alone else self.limits.max_batch_size,
            self.limits.max_delay,
            self.limits.max_concurrency,
        )
        self._rates = _rates(self.limits)
        self._memory = MemoryCache(self.limits.memory_bytes)
        self._disk = None if cache_dir is None else DiskCache(Path(cache_dir).expanduser())
        depends_on = {key: own[key] for key in own if key not in made.transport_options}
        self._identity = [
            f"{made.__module__}:{made.__qualname__}",
            depends_on,
            self.backend.model,
            self.backend.version,
            deterministic,
        ]
        self._under_way: dict[str, asyncio.Task[Verdict]] = {}
        self._counts = ServiceCounts()

    def recall(self, digest: str) -> Verdict | None:
        """Return the verdict if it is in memory; any thread may call this method."""
        found = self._memory.get(digest)
        if found is None:
            return None
        self._counts.memory_hits += 1
        return Verdict(found[0], self.backend.model, digest)

    async def score(self, request: ScoreRequest, digest: str) -> Verdict:
        """Return the verdict.

        Args:
            request: The request.
            digest: The digest of the request.

        Raises:
            ServiceError: If the backend failed after all retries, or its value is invalid.
            ConfigurationError: If the backend cannot be used, or does not support this type of
                request.
        """
        if (verdict := self.recall(digest)) is not None:
            return verdict
        self._counts.requests += 1
        task = self._under_way.get(digest)
        if task is None:
            # The context is empty because several callers share the task, which must not use the
            # log of one of them.
            task = asyncio.create_task(self._obtain(request, digest), context=Context())
            self._under_way[digest] = task
            task.add_done_callback(lambda done: self._settle(digest, done))
        else:
            self._counts.joined += 1
        # If one of several waiting callers is cancelled, the verdict is still kept for the next
        # caller.
        verdict = await asyncio.shield(task)
        return verdict._replace(value=normalized(verdict.value))

    async def counts(self) -> ServiceCounts:
        """Return a copy of the counts so far."""
        return dataclasses.replace(self._counts)

    def close(self) -> None:
        """Close the backend and the cache file."""
        self.backend.close()
        if self._disk is not None:
            self._disk.close()

    def _settle(self, digest: str, task: asyncio.Task[Verdict]) -> None:
        del self._under_way[digest]
        if not task.cancelled():
            task.exception()  # asyncio warns about an exception that is never retrieved

    async def _obtain(self, request: ScoreRequest, digest: str) -> Verdict:
        key = hashlib.sha256(canonical([*self._identity, digest])).hexdigest()
        found = None if self._disk is None else await asyncio.to_thread(self._disk.get, key)
        if found is not None:
            self._counts.disk_hits += 1
            value = found[0]
        else:
            value = await self._ask_backend(request)
            if self._disk is not None:
                await asyncio.to_thread(self._disk.put, key, value)
        self._memory.put(digest, value)
        return Verdict(value, self.backend.model, digest)

    async def _ask_backend(self, request: ScoreRequest) -> Any:
        if not isinstance(request, self.backend.requests):
            known = ", ".join(sorted(kind.__name__ for kind in self.backend.requests))
            raise ConfigurationError(
                f"The scorer {self.name!r} answers {known}, not {type(request).__name__}."
            )
        try:
            return normalized(await retried(lambda: self._attempt(request), self.limits.retries))
        except TransientError as error:
            attempts = self.limits.retries + 1
            reason = f"no verdict in {attempts} attempts; the last: {error}"
            raise ServiceError(self.name, reason) from error
        except RefusedError as error:
            raise ServiceError(self.name, str(error)) from error
        except VisenvError:
            raise
        except Exception as error:  # a model may raise any exception
            reason = f"{type(error).__name__}: {error}"[:500]
            raise ServiceError(self.name, reason) from error

    async def _attempt(self, request: ScoreRequest) -> Any:
        for rate in self._rates:
            cost = self.backend.tokens(request) if rate.of_tokens else 1.0
            # The limiter refuses an amount that exceeds its capacity.
            await rate.limiter.acquire(min(cost, rate.limiter.max_rate))
        return await self._batcher.submit(request)

    async def _score_batch(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        try:
            return await self._send(requests)
        except (TransientError, ConfigurationError):
            raise
        except Exception:
            if len(requests) == 1:
                raise
        # One bad request must not fail the others, so each is sent again in its own batch.
        return [await self._send_alone(request) for request in requests]

    async def _send_alone(self, request: ScoreRequest) -> Any:
        try:
            return (await self._send([request]))[0]
        except Exception as error:  # noqa: BLE001  the batcher hands it to the one who waits
            return error

    async def _send(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        self._counts.batches += 1
        self._counts.sent += len(requests)
        try:
            async with asyncio.timeout(self.limits.timeout):
                values = await self.backend.score_batch(requests)
        except TimeoutError as error:
            raise TransientError(f"no answer within {self.limits.timeout:g} s") from error
        if len(values) != len(requests):
            raise RefusedError(f"{len(values)} values for {len(requests)} requests")
        return values


class _Rate(NamedTuple):
    limiter: AsyncLimiter
    of_tokens: bool


def _rates(limits: ServiceLimits) -> list[_Rate]:
    """Return the rate limiters. Each is a leaky bucket with the capacity of one minute."""
    given = [(limits.requests_per_minute, False), (limits.tokens_per_minute, True)]
    return [
        _Rate(AsyncLimiter(most, time_period=60.0), of_tokens)
        for most, of_tokens in given
        if most is not None
    ]
