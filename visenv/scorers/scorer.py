"""Defines `Scorer`, the picklable handle to a judge, a teacher model or an encoder.

A `VerdictLog` records the verdicts that a block of code uses, and may answer from recorded ones::

    with using(log):
        score = await judge(question=question, answer=answer)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from typing_extensions import override

from visenv.options import read_options
from visenv.registration import path_of
from visenv.scorers.backend import backend_class
from visenv.scorers.batching import loop
from visenv.scorers.handle import ScorerHandle
from visenv.scorers.request import ScoreRequest, digest, is_cheap
from visenv.scorers.service import ServiceCounts, Verdict
from visenv.scorers.services import release, resolve, share
from visenv.scorers.sharing import ScorerAddress


class VerdictLog(Protocol):
    """Receives every verdict, and may answer instead of the backend; any thread may call it."""

    def find(self, scorer: Scorer, digest: str) -> Verdict | None:
        """Return a recorded verdict, or None to use the backend.

        A log that must not use the backend raises an exception, which reaches the caller of the
        scorer.
        """
        ...

    def record(self, scorer: Scorer, verdict: Verdict) -> None:
        """Record a verdict, including recorded ones, in the order in which they arrive."""
        ...


_current: ContextVar[VerdictLog | None] = ContextVar("verdict_log", default=None)


@contextmanager
def using(log: VerdictLog | None) -> Iterator[None]:
    """Pass all verdicts in the block, and in tasks that are started in it, to the log.

    Args:
        log: The log, or None for no log.
    """
    token = _current.set(log)
    try:
        yield
    finally:
        _current.reset(token)


def current_log() -> VerdictLog | None:
    """Return the log of the innermost `using` block around the caller."""
    return _current.get()


class Scorer(ScorerHandle):
    """Scores requests by a backend.

    All equal handles of a process use one shared instance, which batches and caches. A handle that
    is sent to a worker process uses the instance of the process that pickled it, unless its backend
    is a server or cheap to create. The arguments, attributes and errors are those of
    `ScorerHandle`.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Scorer:
        """Create a handle from one line: ``backend:main?option=value&option=value``.

        The part after the first colon is the backend's main option, and values are JSON or plain
        text: ``"openai:gpt-4o?base_url=http://localhost:8000/v1&timeout=30"``,
        ``"transformers:<folder>"``, ``"rules:module:function"``, ``"recorded:<file>"``.

        Raises:
            ConfigurationError: As in the constructor, or if the line does not have this form.
        """
        name, _, rest = text.partition(":")
        path_of("scorer", name)  # raises an error for an unknown name
        main, _, query = rest.partition("?")
        told = read_options(query, "a scorer")
        options: dict[str, Any] = {key: _json_or_text(value) for key, value in told.items()}
        if main:
            options[backend_class(name).main_option] = main
        return cls(name, **options)

    # ---------------------------------------------------------------------------------- scoring

    async def score(self, request: ScoreRequest) -> Verdict:
        """Return the verdict on a request; works in any event loop.

        Raises:
            ServiceError: If the backend failed after all retries.
            ConfigurationError: If the backend cannot be used.
            ImageError: If an image of the request cannot be decoded.
        """
        return await asyncio.wrap_future(self.submit(request))

    def submit(self, request: ScoreRequest) -> Future[Verdict]:
        """Return a future of the verdict immediately; any thread may call this method.

        Raises:
            ConfigurationError: As in `score`; the future may also contain these exceptions.
        """
        log = current_log()
        if not is_cheap(request):
            return loop.submit(self._hash_and_ask(request, log))
        request_digest = digest(request)
        verdict = self._recall(request_digest, log)
        if verdict is None:
            return loop.submit(self._ask(request, request_digest, log))
        future: Future[Verdict] = Future()
        future.set_result(verdict)
        return future

    def counts(self) -> ServiceCounts:
        """Return the counts of the shared instance so far, for reports and tests."""
        return loop.run(resolve(self).counts())

    def close(self) -> None:
        """Close the instance of this process; the next request creates a new one."""
        release(self.key)

    def _recall(self, request_digest: str, log: VerdictLog | None) -> Verdict | None:
        """Return the verdict if it is recorded or in memory."""
        verdict = None if log is None else log.find(self, request_digest)
        if verdict is None:
            verdict = resolve(self).recall(request_digest)
        if verdict is not None and log is not None:
            log.record(self, verdict)
        return verdict

    async def _hash_and_ask(self, request: ScoreRequest, log: VerdictLog | None) -> Verdict:
        # Decoding and hashing a large image would block the event loop.
        request_digest = await asyncio.to_thread(digest, request)
        verdict = self._recall(request_digest, log)
        return verdict or await self._ask(request, request_digest, log)

    async def _ask(
        self, request: ScoreRequest, request_digest: str, log: VerdictLog | None
    ) -> Verdict:
        verdict = await resolve(self).score(request, request_digest)
        if log is not None:
            log.record(self, verdict)
        return verdict

    def __copy__(self) -> Scorer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Scorer:
        return self

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        shared = backend_class(self.backend).shared_with_children
        return _unpickled, (self.description(), (self.parent or share()) if shared else None)


def _unpickled(description: Mapping[str, Any], parent: ScorerAddress | None) -> Scorer:
    scorer = Scorer.from_description(description)
    scorer.parent = parent
    return scorer


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
