"""Defines `RayEngine`, a sampling engine in an actor on any machine of a Ray cluster."""

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
from visenv.rollout.replicas import Weight, WeightChannel
from visenv.types import Message, Reply, Sampling, Segment, TurnRequest

_BUCKET_BYTES = 256 * 2**20
"""Bytes of weights in one call of the actor."""

_MOST_TURNS = 4096
"""Maximum number of requests in flight in the actor, more than an engine samples at once."""

_RESTARTING = frozenset({"max_restarts", "max_task_retries"})
"""Options with which Ray would restart an actor without a notice to visenv."""

Context = Literal["append", "replace"]
Shown = tuple[tuple[Message, ...], Context]


class RayEngine(EnginePolicy["RemoteSession"]):
    """Runs an engine in a Ray actor; a lost engine is started again on any machine of the cluster.

    `Replicas` samples with several of these engines. Ray copies the weights from this process to
    the actor, in parts. If the engine can be a vLLM server that receives the weights by NCCL
    (`VLLMServerPolicy`), that is faster.

    Args:
        make: Makes the policy of the engine in the actor. It is sent by cloudpickle.
        timeout: Time limit of one turn, in seconds.
        start_timeout: Time limit until Ray has placed the actor and the actor has made its policy,
            in seconds.
        transfer_timeout: Time limit of each part of the weights, of `sleep` and of `wake`, in
            seconds.
        **options: Options of the actor, as in Ray's ``options``: ``num_gpus=1``, ``resources=…``.

    Raises:
        PolicyError: If the actor does not start.
        ConfigurationError: If an option lets Ray restart the actor by itself. Without notice to
            visenv, the new actor would sample with the initial weights and without the sessions of
            the old one.
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
                "weights and sessions. Remove the options; `load` restarts a lost engine."
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
    def open(self, seed: int) -> RemoteSession:
        """Return a new session; the first request opens a session of the engine in the actor."""
        session = RemoteSession(self._actor, next(self._numbers), seed, self._transfer_timeout)
        finalize(session, _end, self._actor, session.number).atexit = False
        return session

    @override
    async def respond(
        self, session: RemoteSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        """Sample the next turn in the actor; cancelling the task aborts the request.

        Raises:
            PolicyError: If the engine raised a `PolicyError`, if the engine is lost, or if the turn
                took longer than its time limit.
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
            raise PolicyError(f"The engine's actor has ended: {first_line(error)}") from error
        except RayTaskError as error:
            if session.actor is self._actor:
                self.version, self.stale = await self._actor.state.remote()
            raise error.cause from error
        session.said(reply)
        return reply

    # ------------------------------------------------------------------ weights

    @override
    def load(self, weights: Iterable[Weight], version: int) -> None:
        """Send weights to the engine, after a restart if it was lost; see `EnginePolicy.load`."""
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
        self._actor: Any = ray.remote(_RemoteEngine).options(**self._options).remote(self._make)
        self._lost = False
        self.version, self.stale = self._call("state", timeout=self._start_timeout)
        self.image_processor = self._call("image_processor")

    def _do(self, method: str) -> None:
        """Call a method that may change the engine's state, and read the new state."""
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
            raise PolicyError(f"The engine's {method} took longer than {limit:g} s.") from error
        except RayActorError as error:
            self._lose(self._actor)
            raise PolicyError(f"The engine's actor has ended: {first_line(error)}") from error
        except RayTaskError as error:
            raise error.cause from error

    def _lose(self, actor: Any) -> None:
        """Kill an actor and mark the engine as lost, so that the next `load` starts a new actor."""
        ray.kill(actor)  # the actor may be alive and only unreachable
        if actor is self._actor:
            self._lost = self.stale = True


class RemoteSession(Session):
    """Represents a session whose tokens are kept in the actor of the engine.

    Args:
        actor: The actor of the engine.
        number: Number of the session in the actor.
        seed: Seed of the sampling.
        timeout: Time limit for fetching the tokens, in seconds.

    Attributes:
        shown: The messages that will be sent to the actor with the next request.
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
        """Add messages; they are sent to the actor with the next request."""
        super().observe(messages, context)
        self.shown.append((tuple(message.in_memory() for message in messages), context))

    @override
    def segments(self) -> tuple[Segment, ...]:
        """Fetch the segments and return them; on an event loop, use `fetch_segments` instead.

        Raises:
            PolicyError: If the engine is lost with its sessions, or takes too long.
        """
        return background.run(self.fetch_segments())

    @override
    async def fetch_segments(self) -> tuple[Segment, ...]:
        """Fetch the segments and return them, without blocking the event loop.

        Raises:
            PolicyError: If the engine is lost with its sessions, or takes too long.
        """
        pending = self.actor.segments.remote(self.number)
        try:
            async with asyncio.timeout(self._timeout):
                segments: tuple[Segment, ...] = await asyncio.wrap_future(pending.future())
        except TimeoutError as error:
            raise PolicyError(
                f"Fetching the tokens of an episode took longer than {self._timeout:g} s."
            ) from error
        except RayActorError as error:
            raise PolicyError(f"The engine's actor has ended: {first_line(error)}") from error
        return segments


def _end(actor: Any, number: int) -> None:
    """Delete a session in its actor, unless the actor or Ray has ended already."""
    if ray.is_initialized():  # otherwise the call would start Ray
        guarded(actor.end.remote, number)


class _RemoteEngine:
    """Implements the actor: holds a policy, its sessions, and the current weight transfer."""

    def __init__(self, make: Callable[[], EnginePolicy[Any]]) -> None:
        self._policy = make()
        self._sessions: dict[int, Session] = {}
        self._threads = ThreadPoolExecutor()
        self._line = WeightChannel()
        self._load: Future[None] = Future()

    async def state(self) -> tuple[int, bool]:
        return self._policy.version, self._policy.stale

    async def image_processor(self) -> str | None:
        return self._policy.image_processor

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
        self._line = WeightChannel()
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
    """Yield the weights on the CPU, in lists of about `_BUCKET_BYTES`."""
    bucket: list[Weight] = []
    size = 0
    for name, weight in weights:
        bucket.append((name, weight.cpu().clone()))  # the original is valid until the next weight
        size += weight.nbytes
        if size >= _BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
    if bucket:
        yield bucket
