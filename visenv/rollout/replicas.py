"""Distributes episodes over several engines, which act as one policy."""

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
"""Seconds between two checks of whether the transfer to an engine has ended."""

Weight = tuple[str, Any]


class Replicas(EnginePolicy[Session]):
    """Distributes episodes over several engines with the same model and settings.

    A new episode is given to the engine with the fewest episodes, and stays there. An engine that
    is `stale` gets no new episodes until it has received weights, unless all engines are stale.

    Args:
        engines: The engines. With the same weights, they must sample from the same distribution.

    Raises:
        ConfigurationError: If there is no engine.
    """

    def __init__(self, engines: Sequence[EnginePolicy[Any]]) -> None:
        if not engines:
            raise ConfigurationError("Replicas needs at least one engine, got none.")
        self.engines = tuple(engines)
        self._of: WeakKeyDictionary[Session, EnginePolicy[Any]] = WeakKeyDictionary()
        self._sessions: Counter[int] = Counter()

    @property
    @override
    def version(self) -> int:  # type: ignore[override]
        """Return the lowest version of the weights with which the engines sample."""
        return min(engine.version for engine in self.engines)

    @property
    @override
    def stale(self) -> bool:  # type: ignore[override]
        """Return whether at least one engine needs `load`."""
        return any(engine.stale for engine in self.engines)

    @override
    def open(self, seed: int) -> Session:
        """Return a session of the engine that has the fewest sessions."""

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
        """Take the next turn with the engine of the session."""
        reply: Reply = await self._of[session].respond(session, request, sampling)
        return reply

    @override
    def load(self, weights: Iterable[Weight], version: int) -> None:
        """Send the weights to all engines in parallel; each weight is read from `weights` once.

        Raises:
            PolicyError: If an engine failed, as in `EnginePolicy.load`. The engines that did not
                fail have the new weights.
        """
        with ThreadPoolExecutor(len(self.engines)) as threads:
            lines = [WeightChannel() for _ in self.engines]
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


class WeightChannel:
    """Passes weights to one engine; each weight is valid until the next one is requested."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Weight | None] = SimpleQueue()
        self._taken = Event()

    def put(self, weight: Weight | None) -> None:
        """Add a weight to the queue; None marks the end."""
        self._taken.clear()
        self._queue.put(weight)

    def weights(self) -> Iterator[Weight]:
        """Yield the weights of the queue; the engine calls this."""
        while (weight := self._queue.get()) is not None:
            yield weight
            self._taken.set()

    def wait(self, load: Future[None], watch: Callable[[], None] = lambda: None) -> None:
        """Wait until the engine has loaded the weight that was put last, or has stopped loading.

        Args:
            load: The call of `EnginePolicy.load` that reads this queue; it is done when the engine
                has stopped loading.
            watch: Called about ten times a second; an exception of this function ends the wait.
        """
        while not load.done() and not self._taken.wait(_PATIENCE):
            watch()
