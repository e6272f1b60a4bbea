"""An engine on any machine of a Ray cluster, which samples as if it were here."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal
from weakref import finalize

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
from typing_extensions import override

from visenv import background
from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import EnginePolicy, Session
from visenv.rollout.hosts import guarded
from visenv.rollout.ray_executor import connect, first_line
from visenv.rollout.replicas import Line, Weight
from visenv.types import Message, Reply, Sampling, Segment, TurnRequest

_BUCKET_BYTES = 256 * 2**20
"""How much of the weights travels at once."""

_MOST_TURNS = 4096
"""Most requests in flight over there: more than engines take."""

_RESTARTING = frozenset({"max_restarts", "max_task_retries"})
"""Options by which Ray would replace an actor behind our back."""

Context = Literal["append", "replace"]
Shown = tuple[tuple[Message, ...], Context]


class RayEngine(EnginePolicy["FarSession"]):
    """An engine in a Ray actor, started anew there or elsewhere when it is lost.

    Several of them sample as one in `Replicas`. Weights travel through this process, some at a
    time; where engine and trainer can send them directly, that is faster.

    Args:
        make: Makes the engine's policy over there; handed over by cloudpickle.
        timeout: Most seconds for one turn.
        start_timeout: Most seconds until the actor has found a place and made its policy.
        transfer_timeout: Most seconds for each part of the weights, a sleep or an awakening.
        **options: Of the actor, as in Ray's ``options``: ``num_gpus=1``, ``resources=…``.

    Raises:
        PolicyError: If it does not start.
        ConfigurationError: If Ray is to restart the actor by itself: the new one would go on with
            the checkpoint's weights and without its sessions, and nobody would notice.
    """

    def __init__(
        self,
        make: Callable[[], EnginePolicy[Any]],
        *,
        timeout: float = 1800.0,
        start_timeout: float = 1800.0,
        transfer_timeout: float = 600.0,
        **options: Any,
    ) -> None:
        if refused := _RESTARTING & options.keys():
            raise ConfigurationError(
                f"{', '.join(sorted(refused))}: an actor that Ray restarts by itself has lost its "
                "weights and sessions. Leave the option out; `load` starts a lost engine anew."
            )
        connect()
        self._make = make
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._transfer_timeout = transfer_timeout
        self._options = {"max_concurrency": _MOST_TURNS, **options}
        self._numbers = itertools.count()
        self._start()

    # ------------------------------------------------------------------ sampling

    @override
    def open(self, seed: int) -> FarSession:
        session = FarSession(self._actor, next(self._numbers), seed, self._transfer_timeout)
        finalize(session, _end, self._actor, session.number).atexit = False
        return session

    @override
    async def respond(self, session: FarSession, request: TurnRequest, sampling: Sampling) -> Reply:
        """The next turn, sampled over there. Cancelling the task aborts it.

        Raises:
            PolicyError: What the engine raised; or it is lost, or took longer than its limit.
        """
        shown, session.shown = session.shown, []
        told = (session.number, session.seed, shown, request, sampling)
        pending = session.actor.respond.remote(*told)
        try:
            async with asyncio.timeout(self._timeout):
                reply: Reply = await asyncio.wrap_future(pending.future())
        except asyncio.CancelledError:
            ray.cancel(pending)
            raise
        except TimeoutError as error:
            ray.cancel(pending)
            raise PolicyError(f"The engine took longer than {self._timeout:g} s.") from error
        except RayActorError as error:
            self._lose(session.actor)
            raise PolicyError(f"The engine's actor is gone: {first_line(error)}") from error
        except RayTaskError as error:
            if session.actor is self._actor:
                self.version, self.stale = await self._actor.state.remote()
            raise error.cause from error
        session.said(reply)
        return reply

    # ------------------------------------------------------------------ weights

    @override
    def load(self, weights: Iterable[Weight], version: int) -> None:
        """See `EnginePolicy.load`; an engine that was lost is started anew first."""
        if self._lost:
            self._start()
        self._call("begin", version)
        try:
            for bucket in _buckets(weights):
                self._call("take", bucket)
        finally:
            self._do("finish")

    @override
    def sleep(self) -> None:
        self._do("sleep")

    @override
    def wake(self) -> None:
        self._do("wake")

    @override
    def close(self) -> None:
        """End the actor, and the engine with it."""
        ray.kill(self._actor)

    # ------------------------------------------------------------------ the actor

    def _start(self) -> None:
        self._actor: Any = ray.remote(_FarEngine).options(**self._options).remote(self._make)
        self._lost = False
        self.version, self.stale = self._call("state", timeout=self._start_timeout)

    def _do(self, method: str) -> None:
        """Do what may change the state, and see what has become of it."""
        try:
            self._call(method)
        finally:
            if not self._lost:
                self.version, self.stale = self._call("state")

    def _call(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        limit = self._transfer_timeout if timeout is None else timeout
        try:
            return ray.get(getattr(self._actor, method).remote(*arguments), timeout=limit)
        except GetTimeoutError as error:
            self._lose(self._actor)
            raise PolicyError(f"The engine: {method} took longer than {limit:g} s.") from error
        except RayActorError as error:
            self._lose(self._actor)
            raise PolicyError(f"The engine's actor is gone: {first_line(error)}") from error
        except RayTaskError as error:
            raise error.cause from error

    def _lose(self, actor: Any) -> None:
        """Have the next `load` start another; this one may only be out of reach."""
        ray.kill(actor)
        if actor is self._actor:
            self._lost = self.stale = True


class FarSession(Session):
    """A session whose other half, with the tokens, is where the engine is.

    Args:
        actor: The engine's actor.
        number: The session's number over there.
        seed: Of its sampling.
        timeout: Most seconds to fetch the tokens.
    """

    def __init__(self, actor: Any, number: int, seed: int, timeout: float) -> None:
        super().__init__()
        self.actor = actor
        self.number = number
        self.seed = seed
        self._timeout = timeout
        self.shown: list[Shown] = []

    @override
    def observe(self, messages: Sequence[Message], context: Context = "append") -> None:
        """Take in messages, which travel with the next request."""
        super().observe(messages, context)
        self.shown.append((tuple(message.in_memory() for message in messages), context))

    @override
    def segments(self) -> tuple[Segment, ...]:
        """Return the tokens, fetched; blocks meanwhile. On an event loop use `fetch_segments`.

        Raises:
            PolicyError: If the engine is lost, and its sessions with it, or takes too long.
        """
        return background.run(self.fetch_segments())

    @override
    async def fetch_segments(self) -> tuple[Segment, ...]:
        """Return the tokens, fetched.

        Raises:
            PolicyError: If the engine is lost, and its sessions with it, or takes too long.
        """
        pending = self.actor.segments.remote(self.number)
        try:
            async with asyncio.timeout(self._timeout):
                segments: tuple[Segment, ...] = await asyncio.wrap_future(pending.future())
        except TimeoutError as error:
            raise PolicyError(
                f"The tokens of an episode took longer than {self._timeout:g} s."
            ) from error
        except RayActorError as error:
            raise PolicyError(f"The engine's actor is gone: {first_line(error)}") from error
        return segments


def _end(actor: Any, number: int) -> None:
    """Forget a session over there; actor and Ray may be gone by then."""
    if ray.is_initialized():  # otherwise the call would start it
        guarded(actor.end.remote, number)


class _FarEngine:
    """What the actor is: a policy, its sessions, and weights on their way to it."""

    def __init__(self, make: Callable[[], EnginePolicy[Any]]) -> None:
        self._policy = make()
        self._sessions: dict[int, Session] = {}
        self._threads = ThreadPoolExecutor()
        self._line = Line()
        self._load: Future[None] = Future()

    async def state(self) -> tuple[int, bool]:
        return self._policy.version, self._policy.stale

    async def respond(
        self,
        number: int,
        seed: int,
        shown: Sequence[Shown],
        request: TurnRequest,
        sampling: Sampling,
    ) -> Reply:
        if number not in self._sessions:
            self._sessions[number] = self._policy.open(seed)
        session = self._sessions[number]
        for messages, context in shown:
            session.observe(messages, context)
        return await self._policy.respond(session, request, sampling)

    async def segments(self, number: int) -> tuple[Segment, ...]:
        return self._sessions[number].segments()

    async def end(self, number: int) -> None:
        self._sessions.pop(number, None)

    async def begin(self, version: int) -> None:
        self._line = Line()
        self._load = self._threads.submit(self._policy.load, self._line.weights(), version)

    async def take(self, bucket: Sequence[Weight]) -> None:
        await asyncio.to_thread(self._hand_over, bucket)

    def _hand_over(self, bucket: Sequence[Weight]) -> None:
        for weight in bucket:
            self._line.put(weight)
            self._line.wait(self._load)

    async def finish(self) -> None:
        self._line.put(None)
        await asyncio.wrap_future(self._load)

    async def sleep(self) -> None:
        await asyncio.to_thread(self._policy.sleep)

    async def wake(self) -> None:
        await asyncio.to_thread(self._policy.wake)


def _buckets(weights: Iterable[Weight]) -> Iterator[list[Weight]]:
    """Weights on the CPU, as many at once as are worth a journey."""
    bucket: list[Weight] = []
    size = 0
    for name, weight in weights:
        bucket.append((name, weight.cpu().clone()))  # it is valid until the next one only
        size += weight.nbytes
        if size >= _BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
    if bucket:
        yield bucket
