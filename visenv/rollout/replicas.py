"""Several engines that sample as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event
from typing import Any
from weakref import WeakKeyDictionary, finalize

from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import EnginePolicy, Session
from visenv.types import Reply, Sampling, TurnRequest

_PATIENCE = 0.1
"""Seconds between two looks whether an engine that takes no weights is still taking any."""

Weight = tuple[str, Any]


class Replicas(EnginePolicy[Session]):
    """Spreads episodes over engines; each stays with the one that had the fewest when it began.

    One that is `stale` gets no new episodes until it has been sent weights: the others go on.

    Args:
        engines: The engines, alike in all that matters to what they say.

    Raises:
        ConfigurationError: If there is none.
    """

    def __init__(self, engines: Sequence[EnginePolicy[Any]]) -> None:
        if not engines:
            raise ConfigurationError("Replicas of an engine are at least one, got none.")
        self.engines = tuple(engines)
        self._of: WeakKeyDictionary[Session, EnginePolicy[Any]] = WeakKeyDictionary()
        self._sessions: Counter[int] = Counter()

    @property
    @override
    def version(self) -> int:  # type: ignore[override]
        """Of the oldest weights that an engine samples with."""
        return min(engine.version for engine in self.engines)

    @property
    @override
    def stale(self) -> bool:  # type: ignore[override]
        """Whether one of them needs `load`."""
        return any(engine.stale for engine in self.engines)

    @override
    def open(self, seed: int) -> Session:
        """A session with the engine that has the fewest."""

        def load(index: int) -> tuple[bool, int]:
            return self.engines[index].stale, self._sessions[index]

        index = min(range(len(self.engines)), key=load)
        session: Session = self.engines[index].open(seed)
        self._of[session] = self.engines[index]
        self._sessions[index] += 1
        finalize(session, self._sessions.subtract, [index])
        return session

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        """The next turn, by the session's engine."""
        reply: Reply = await self._of[session].respond(session, request, sampling)
        return reply

    @override
    def load(self, weights: Iterable[Weight], version: int) -> None:
        """Send the weights to all engines at once, each weight read once.

        Raises:
            PolicyError: As `EnginePolicy.load`, if any of them failed; the others have the weights.
        """
        with ThreadPoolExecutor(len(self.engines)) as threads:
            lines = [Line() for _ in self.engines]
            loads = [
                threads.submit(engine.load, line.weights(), version)
                for engine, line in zip(self.engines, lines, strict=True)
            ]
            try:
                for weight in weights:
                    for line in lines:
                        line.put(weight)
                    for line, load in zip(lines, loads, strict=True):
                        line.wait(load)
            finally:
                for line in lines:
                    line.put(None)
        errors = [error for each in loads if (error := each.exception()) is not None]
        for error in sorted(errors, key=lambda each: isinstance(each, PolicyError)):
            raise error

    @override
    def sleep(self) -> None:
        self._all(lambda engine: engine.sleep())

    @override
    def wake(self) -> None:
        self._all(lambda engine: engine.wake())

    @override
    def close(self) -> None:
        self._all(lambda engine: engine.close())

    def _all(self, call: Callable[[EnginePolicy[Any]], None]) -> None:
        with ThreadPoolExecutor(len(self.engines)) as threads:
            list(threads.map(call, self.engines))


class Line:
    """Weights on their way to one engine, each valid until the next is asked for."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Weight | None] = SimpleQueue()
        self._taken = Event()

    def put(self, weight: Weight | None) -> None:
        """Hand over a weight, or the end of them."""
        self._taken.clear()
        self._queue.put(weight)

    def weights(self) -> Iterator[Weight]:
        """The engine's end."""
        while (weight := self._queue.get()) is not None:
            yield weight
            self._taken.set()

    def wait(self, load: Future[None], watch: Callable[[], None] = lambda: None) -> None:
        """Wait until the engine has taken over what it was handed, or takes nothing more.

        Args:
            load: Is done when the engine takes nothing more.
            watch: Called now and then; what it raises ends the wait.
        """
        while not load.done() and not self._taken.wait(_PATIENCE):
            watch()
