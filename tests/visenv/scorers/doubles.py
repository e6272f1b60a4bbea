"""Defines backends that record their requests, and fail on request."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.scorers import (
    InProcessBackend,
    RefusedError,
    ScorerBackend,
    ScoreRequest,
    ServiceLimits,
    TransientError,
)

BATCHES: defaultdict[str, list[list[Any]]] = defaultdict(list)
"""The requests that each backend has received, by its tag."""

FAILED: Counter[str] = Counter()
RELEASE = threading.Event()
"""Releases calls that hang in a thread."""


@dataclass(frozen=True)
class Echo(ScoreRequest):
    """Requests its own content; some texts make a backend fail."""

    kind: ClassVar[str] = "test-echo"
    content: Any


def act(tag: str, content: Any) -> Any:
    """Return the content, or do the action of a text of the form ``word:...``."""
    word, _, rest = str(content).partition(":")
    if word == "transient":  # fails as often as the number says
        FAILED[f"{tag} {content}"] += 1
        if FAILED[f"{tag} {content}"] <= int(rest):
            raise TransientError("busy", 0.01)
    if word == "refuse":
        raise RefusedError("not for you")
    if word == "error":
        raise RuntimeError("a bug in the model")
    if word == "nan":
        return float("nan")
    if word == "array":
        return np.arange(int(rest), dtype=np.float32)
    return content


class RemoteDouble(ScorerBackend):
    """Represents a server that answers batches.

    Args:
        tag: The key under which requests are recorded.
        seconds: The time for a batch.
    """

    requests = (Echo,)
    main_option = "tag"
    transport_options = frozenset({"seconds"})
    limits = ServiceLimits(max_batch_size=16, max_delay=0.01, timeout=60.0)

    def __init__(self, tag: str, seconds: float = 0.0) -> None:
        self._tag = tag
        self._seconds = seconds
        self.in_flight = 0
        self.most_in_flight = 0

    @property
    @override
    def model(self) -> str:
        return f"model of {self._tag}"

    @override
    def tokens(self, request: ScoreRequest) -> int:
        return 100

    @override
    async def score_batch(self, requests: Sequence[Any]) -> Sequence[Any]:
        BATCHES[self._tag].append([request.content for request in requests])
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self._seconds)
            if any(request.content == "hang" for request in requests):
                await asyncio.Event().wait()
            if any(request.content == "short" for request in requests):
                return []
            return [act(self._tag, request.content) for request in requests]
        finally:
            self.in_flight -= 1


class ModelDouble(InProcessBackend):
    """Represents a local model whose values depend on the batch, like those of real models.

    Args:
        folder: The folder where each loaded instance writes a file named by its process.
        tag: The key under which requests are recorded.
    """

    requests = (Echo,)
    main_option = "folder"

    def __init__(self, folder: str, tag: str = "") -> None:
        super().__init__()
        self._folder = Path(folder)
        self._tag = tag

    @property
    @override
    def model(self) -> str:
        return "double"

    @override
    def load(self) -> None:
        if self._tag == "unloadable":
            raise RuntimeError("no weights")
        (self._folder / f"{os.getpid()}-{time.time_ns()}").touch()

    @override
    def compute(self, requests: Sequence[Any]) -> Sequence[Any]:
        BATCHES[self._tag].append([request.content for request in requests])
        if any(request.content == "hang" for request in requests):
            RELEASE.wait(60)
        values = [act(self._tag, request.content) for request in requests]
        return [
            {"value": value, "batch": len(requests), "pid": os.getpid()}
            if isinstance(value, (int, str))
            else value
            for value in values
        ]


class InvariantDouble(ModelDouble):
    """Represents a model that gives the same bits in any batch."""

    batch_invariant = True


def double(request: ScoreRequest) -> Any:
    """Return the content twice, as a rule of the "rules" backend."""
    assert isinstance(request, Echo)
    return act("rule", request.content) * 2


NOT_CALLABLE = 7
