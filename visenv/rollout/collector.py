"""The Collector: many episodes at once, without lock step, whatever goes wrong in one of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from visenv.errors import DataError, ImageError, PolicyError
from visenv.policy import Policy
from visenv.rollout.episode import Place, boundary, play_at
from visenv.rollout.executor import Executor, InlineExecutor, Seat
from visenv.rollout.gate import Gate
from visenv.rollout.meter import Meter
from visenv.rollout.stage import MakeEnv
from visenv.types import Episode, Group, Sampling

_log = logging.getLogger(__name__)

_UNREADABLE = frozenset({DataError.__name__, ImageError.__name__})
"""What fails in the same way however often it is tried."""

_NOT_THE_ENVIRONMENT = _UNREADABLE | {PolicyError.__name__}
"""What leaves the environment fit for another episode."""

OnEpisode = Callable[[Episode], None]


class Collector:
    """Plays groups of episodes at once; each environment is reused when its episode ends.

    No lock step: an episode goes on as soon as its own reply is there. Replies of a local model are
    batched by the policy.

    An environment that raises, hangs or dies aborts its episode and is replaced. An aborted episode
    is played again, the same sample with the same seeds, up to `retries` times; then it is kept as
    it is. One whose sample cannot be read is not played again. What a policy raises other than
    `PolicyError` and `ServiceError` is a bug, and raised.

    Args:
        make_env: Makes one environment.
        policy: Who plays.
        sampling: How to sample.
        concurrency: Most episodes in flight.
        executor: Where environments run; by default here, on the event loop.
        retries: How often an aborted episode is played again.
        revive: Called after a `PolicyError`, once for all episodes that it ended together, before
            they are played again: whoever holds the weights may start an engine anew and send them.
            It does nothing where the policy is well, and raises `PolicyError` where it cannot help.

    Attributes:
        meter: How well the time is used.
    """

    def __init__(
        self,
        make_env: MakeEnv,
        policy: Policy[Any],
        sampling: Sampling | None = None,
        concurrency: int = 128,
        *,
        executor: Executor | None = None,
        retries: int = 0,
        revive: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.policy = policy
        self.sampling = sampling or Sampling()
        self.meter = Meter()
        self._make_env = make_env
        self._executor = executor or InlineExecutor()
        self._retries = retries
        self._gate = Gate(concurrency)
        self._idle: list[Seat] = []
        self._revive = revive
        self._reviving = Gate(1)
        self._revivals = 0

    # ------------------------------------------------------------------ from plain code

    def groups(
        self, seeds: Sequence[int], size: int = 1, on_episode: OnEpisode | None = None
    ) -> list[Group]:
        """Play ``len(seeds)`` groups of `size` episodes.

        Args:
            seeds: One seed for each group.
            size: Episodes in a group.
            on_episode: Called as each episode ends (progress bars).

        Returns:
            The groups in the order of `seeds`, aborted episodes included and marked.
        """
        places = [Place(seed, g, m) for g, seed in enumerate(seeds) for m in range(size)]
        episodes = self.episodes(places, on_episode)
        return [episodes[start : start + size] for start in range(0, len(episodes), size)]

    def episodes(
        self, places: Sequence[Place], on_episode: OnEpisode | None = None
    ) -> list[Episode]:
        """Play one episode for each place; in their order, aborted ones included."""
        return asyncio.run(self._play_all(places, on_episode))

    async def _play_all(
        self, places: Sequence[Place], on_episode: OnEpisode | None
    ) -> list[Episode]:
        async def one(place: Place) -> Episode:
            episode = await self.play(place)
            if on_episode is not None:
                on_episode(episode)
            return episode

        return list(await asyncio.gather(*(one(place) for place in places)))

    # ------------------------------------------------------------------ on an event loop

    async def play(self, place: Place, rank: int = 0) -> Episode:
        """Play one episode in an environment that is idle, or in a new one.

        Cancelled, it aborts what is being sampled and leaves behind what an environment is doing.

        Args:
            place: Which sample, and where the episode belongs.
            rank: Among those that wait to begin, the lowest goes first.
        """
        with self.meter.waiting:
            await self._gate.acquire(rank)
        try:
            with self.meter.playing:
                return await self._play_again(place)
        except asyncio.CancelledError:
            self.meter.cancelled()
            raise
        finally:
            self._gate.release()

    async def _play_again(self, place: Place) -> Episode:
        """Play, and again while it is aborted and may be played again."""
        begun = time.monotonic()
        for left in range(self._retries, -1, -1):
            revivals = self._revivals
            episode = await self._attempt(place)
            if episode.status != "aborted":
                break
            failed_at = boundary(episode)
            again = left > 0 and failed_at not in _UNREADABLE
            self.meter.aborted(failed_at, again)
            if failed_at == PolicyError.__name__:
                await self._put_right(revivals)
            if not again:
                break
        self.meter.finished(time.monotonic() - begun)
        return episode

    async def _attempt(self, place: Place) -> Episode:
        seat = self._idle.pop() if self._idle else self._executor.seat(self._make_env)
        well = True
        try:
            episode = await play_at(seat, self.policy, place, self.sampling, self.meter)
            well = episode.status != "aborted" or boundary(episode) in _NOT_THE_ENVIRONMENT
            return episode
        finally:
            # After a first reset that failed, Gymnasium's checker would not let it be stepped.
            if well and seat.usable and seat.begun:
                self._idle.append(seat)
            else:
                seat.close()

    async def _put_right(self, known: int) -> None:
        """Revive the policy, unless that was done since there were `known` revivals."""
        if self._revive is None:
            return
        await self._reviving.acquire()
        try:
            if self._revivals == known:
                self._revivals += 1
                await self._revive()
        except PolicyError as error:
            _log.warning("The policy could not be put right: %s", error)
        finally:
            self._reviving.release()

    def close(self) -> None:
        """Close the environments; the policy stays open."""
        while self._idle:
            self._idle.pop().close()
        self._executor.close()
