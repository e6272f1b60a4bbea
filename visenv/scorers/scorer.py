"""Defines `Scorer`, the picklable handle to a judge, a teacher model or an encoder."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.credentials import check_no_credentials, variable_of
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.options import read_options
from visenv.received import ReceivedNames, current_names, texts_in
from visenv.registration import path_of
from visenv.scorers.backend import ScorerBackend
from visenv.scorers.loop import loop
from visenv.scorers.recording import VerdictLog, current_log
from visenv.scorers.request import ScoreRequest, digest, is_cheap
from visenv.scorers.service import LIMIT_NAMES, ServiceCounts, Verdict
from visenv.scorers.services import backend_class, release, resolve, share
from visenv.scorers.sharing import ScorerAddress


class Scorer:
    """Describes a backend and its options; a `Scorer` is a handle and holds nothing else.

    All equal handles of a process use one shared instance, which batches and caches. A handle that
    is sent to a worker process uses the instance of the process that pickled it, unless its backend
    is a server or cheap to create.

    Args:
        backend: A key of `visenv.registration.SCORERS`, a scorer of an installed package, or
            ``"module:Class"``.
        deterministic: Whether the answer of a backend in this process must not depend on the batch.
            This has no effect on a server.
        cache_dir: Folder of a persistent cache on disk; None means a cache in memory only. Scorers
            and processes may share a folder.
        **options: Options of the backend and of `ServiceLimits`, JSON-like.

    Attributes:
        options: The options, with the backend's defaults.
        own_texts: The texts in options that differ from the backend's defaults and known models:
            models, addresses, files, functions.
        name: The backend and its main option, for example ``"openai:gpt-4o"``.
        key: The description as text; equal for equal handles.
        received: The names of the received file that gives the options, or None.
        parent: The address of the process that pickled the handle, or None.

    Raises:
        UnknownNameError: If there is no such backend or option; suggests the nearest.
        ConfigurationError: If an option has an invalid value, or looks like a credential.
    """

    __slots__ = (
        *("backend", "options", "deterministic", "cache_dir"),
        *("own_texts", "received", "name", "key", "parent"),
    )

    def __init__(
        self,
        backend: str,
        *,
        deterministic: bool = False,
        cache_dir: str | Path | None = None,
        **options: Any,
    ) -> None:
        made = backend_class(backend)
        _check_options(backend, made, options)
        defaults = _defaults(made)
        self.backend = backend
        self.options: Mapping[str, Any] = defaults | options
        own = [value for name, value in options.items() if value != defaults.get(name)]
        own += [] if cache_dir is None else [str(cache_dir)]
        self.own_texts = tuple([text for text in texts_in(own) if text not in made.known_texts])
        self.deterministic = deterministic
        self.cache_dir = None if cache_dir is None else str(cache_dir)
        self.name = f"{backend}:{self.options[made.main_option]}" if made.main_option else backend
        self.key = json.dumps(self.description(), sort_keys=True)
        self.received: ReceivedNames | None = current_names()
        self.parent: ScorerAddress | None = None

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

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Scorer:
        """Create the handle with this description (see `description`)."""
        rest = {key: description[key] for key in ("deterministic", "cache_dir")}
        return cls(description["backend"], **rest, **description["options"])

    def description(self) -> dict[str, Any]:
        """Return the handle as plain JSON."""
        return {
            "backend": self.backend,
            "options": dict(self.options),
            "deterministic": self.deterministic,
            "cache_dir": self.cache_dir,
        }

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

    # --------------------------------------------------------------------------------- a handle

    @override
    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Scorer) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self.key)

    @override
    def __repr__(self) -> str:
        return f"Scorer({self.key})"

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


def _check_options(backend: str, made: type[ScorerBackend], options: Mapping[str, Any]) -> None:
    """Raise for options that are unknown, cannot be saved, or look like a credential."""
    parameters = inspect.signature(made).parameters
    variable = variable_of(backend, made)
    check_no_credentials(f"scorer {backend!r}", options, variable)
    known = [*parameters, *LIMIT_NAMES]
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of the scorer {backend!r}", name, known)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in options:
            raise ConfigurationError(f"The scorer {backend!r} needs the option {name!r}.")
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"Options of the scorer {backend!r} must be JSON-like: {error}"
        ) from error


def _defaults(made: type[ScorerBackend]) -> dict[str, Any]:
    """Return the default values of options; if a default changes, the scorer's key changes."""
    parameters = inspect.signature(made).parameters.items()
    return {name: each.default for name, each in parameters if each.default is not each.empty}


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
