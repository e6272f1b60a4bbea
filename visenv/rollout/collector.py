"""Plays many episodes concurrently; a failure ends only the episode in which it occurs.

`for_each` plays more episodes than fit in memory: each is saved and released when it ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from visenv import background
from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import Policy
from visenv.rollout.adapter import MakeEnv
from visenv.rollout.arguments import check_make_env, check_policy
from visenv.rollout.episode import EpisodeSpec, check_spec, play_in
from visenv.rollout.executor import Executor, InlineExecutor
from visenv.rollout.in_flight import InFlightBarrier, PrioritySemaphore
from visenv.rollout.mixture import Mixture
from visenv.rollout.slots import EnvSlots
from visenv.rollout.stats import RolloutStats
from visenv.types import Episode, Group, Sampling

_log = logging.getLogger(__name__)

OnEpisode = Callable[[Episode], None]

T = TypeVar("T")

CONCURRENCY = 32
"""Default number of episodes that are in memory at the same time."""


class Collector:
    """Plays groups of episodes concurrently; an environment is reused when its episode ends.

    Episodes do not wait for each other: an episode continues as soon as its own reply has arrived.
    A policy with a local model batches the turns of several episodes. After its last turn an
    episode no longer counts toward `concurrency`, so the next episode can start; the deferred
    reward terms of the first episode are computed afterwards.

    If an environment fails, hangs or dies, its episode is aborted and the environment is replaced.
    An aborted episode is played again, with the same sample and the same seeds, up to `retries`
    times. If all attempts fail, the last attempt is returned. A permanent failure (a row that
    cannot be read) is not retried. A bug in your code (a reward term, a tool, an environment) is
    raised as `CodeError`. An exception of the policy other than `PolicyError` and `ServiceError` is
    raised unchanged.

    Args:
        make_env: A function that makes an environment, or a `Mixture` of several environments.
        policy: The policy that plays.
        sampling: The sampling parameters.
        concurrency: Maximum number of episodes that take turns at the same time.
        executor: Runs the environments; by default in this process, on the event loop.
        retries: Maximum number of retries of an aborted episode.
        revive: Called after a `PolicyError` has aborted episodes, before they are played again. If
            several episodes were aborted at the same time, it is called once. The function that the
            trainer passes restarts a failed engine and sends the weights to it. A `revive` function
            must do nothing if the policy works, and must raise `PolicyError` if the policy cannot
            be restarted.
        deterministic: If True, the batches of the sampler and the starts of episodes do not depend
            on the time at which the result of a scorer arrives. Episodes with deferred reward terms
            are then returned only when all episodes in flight are complete, and a step that waits
            for a tool blocks the event loop. With an executor whose environments run in
            parallel, a turn begins when all episodes have the results of their steps.

    Attributes:
        stats: Counts and times of the rollout.

    Raises:
        ConfigurationError: If an argument has another type, or `concurrency` or `retries` is too
            low.
    """

    def __init__(
        self,
        make_env: MakeEnv | Mixture,
        policy: Policy[Any],
        sampling: Sampling | None = None,
        concurrency: int = 128,
        *,
        executor: Executor | None = None,
        retries: int = 0,
        revive: Callable[[], Awaitable[None]] | None = None,
        deterministic: bool = False,
    ) -> None:
        _check_arguments(policy, concurrency, retries)
        self.policy = policy
        self.sampling = sampling or Sampling()
        self.stats = RolloutStats()
        if not isinstance(make_env, Mixture):
            check_make_env(make_env)
            make_env = Mixture({"": make_env}, {"": 1.0})
        self.mixture = make_env
        self._executor = executor or InlineExecutor(threads=not deterministic)
        self._retries = retries
        self._semaphore = PrioritySemaphore(concurrency)
        self._barrier = InFlightBarrier() if deterministic else None
        self._steps = _step_barrier(self._executor) if deterministic else None
        self._slots = EnvSlots(self._executor, make_env.make_envs)
        self._revive = revive
        self._reviving = PrioritySemaphore(1)
        self._revivals = 0

    # ------------------------------------------------------------------ without an event loop

    def groups(
        self, seeds: Sequence[int], size: int = 1, on_episode: OnEpisode | None = None
    ) -> list[Group]:
        """Play ``len(seeds)`` groups of `size` episodes.

        Args:
            seeds: One seed for each group.
            size: Episodes in a group.
            on_episode: Called when an episode ends, for example by a progress bar.

        Returns:
            The groups in the order of `seeds`, including aborted episodes (`Episode.failure`).
        """
        specs = [EpisodeSpec(seed, g, m) for g, seed in enumerate(seeds) for m in range(size)]
        episodes = self.episodes(specs, on_episode)
        return [episodes[start : start + size] for start in range(0, len(episodes), size)]

    def episodes(
        self, specs: Sequence[EpisodeSpec], on_episode: OnEpisode | None = None
    ) -> list[Episode]:
        """Play one episode for each spec.

        Args:
            specs: The samples, and the positions of the episodes in the batch.
            on_episode: Called when an episode ends, for example by a progress bar.

        Returns:
            The episodes in the order of `specs`, including aborted episodes.
        """
        return background.run_here(self._play_all(specs, on_episode))

    async def _play_all(
        self, specs: Sequence[EpisodeSpec], on_episode: OnEpisode | None
    ) -> list[Episode]:
        async def one(spec: EpisodeSpec) -> Episode:
            check_spec(spec)
            episode = await self.play(spec)
            if on_episode is not None:
                on_episode(episode)
            return episode

        return list(await asyncio.gather(*(one(spec) for spec in specs)))

    # ------------------------------------------------------------------ on an event loop

    async def play(self, spec: EpisodeSpec, rank: int = 0) -> Episode:
        """Play one episode in an idle environment, or in a new one.

        If the task is cancelled, the reply that is being sampled is aborted, and a call that is
        running in an environment is abandoned.

        Args:
            spec: The sample, and the position of the episode in the batch.
            rank: Priority among the episodes that wait because of `concurrency`: the lowest rank is
                played first.
        """
        start = time.monotonic()
        if self._barrier is not None:
            self._barrier.enter()
        try:
            episode = await self._play_until_well(spec, rank)
        except asyncio.CancelledError:
            self.stats.cancelled()
            raise
        finally:
            if self._barrier is not None:
                self._barrier.leave()
        self.stats.finished(time.monotonic() - start)
        return episode

    async def _play_until_well(self, spec: EpisodeSpec, rank: int) -> Episode:
        """Play an episode, with retries if it is aborted; return the last attempt."""
        for left in range(self._retries, -1, -1):
            revivals = self._revivals
            episode, was_deferred = await self._play_in_slot(spec, rank)
            if was_deferred and self._barrier is not None:
                await self._barrier.hold((spec.group, spec.member))
            if episode.failure is None:
                break
            again = left > 0 and not episode.failure.is_permanent
            self.stats.aborted(episode.failure.name, again)
            if episode.failure.source == "policy":
                await self._revive_policy(revivals)
            if not again:
                break
        return episode

    async def _play_in_slot(self, spec: EpisodeSpec, rank: int) -> tuple[Episode, bool]:
        """Play one attempt; return the episode and whether reward terms were deferred."""
        with self.stats.waiting:
            await self._semaphore.acquire(rank)
        if self._steps is not None:
            self._steps.enter()
        held = True

        def release() -> None:
            nonlocal held
            held = False
            self._semaphore.release()
            if self._steps is not None:  # the next episode enters before the barrier is released
                self._steps.leave()

        async def wait_for_others() -> None:
            if self._steps is not None and held:
                await self._steps.hold((spec.group, spec.member))

        try:
            with self.stats.playing:
                name = spec.env or self.mixture.choose(spec.seed)
                slot = await self._slots.take(name)
                usable = True
                try:
                    episode = await play_in(
                        slot,
                        self.policy,
                        spec,
                        self.sampling,
                        self.stats,
                        release,
                        wait_for_others,
                    )
                    usable = episode.failure is None or episode.failure.environment_is_usable
                finally:
                    # If the first reset fails, Gymnasium's checker refuses every later step.
                    usable = usable and slot.usable and slot.begun
                    self._slots.give(name, slot, usable=usable)
        finally:
            was_deferred = not held
            if held:
                release()
        return episode, was_deferred

    async def _revive_policy(self, known: int) -> None:
        """Call `revive`, unless it was called since the failed attempt began.

        `known` is the number of calls when the attempt began.
        """
        if self._revive is None:
            return
        await self._reviving.acquire()
        try:
            if self._revivals == known:
                self._revivals += 1
                await self._revive()
        except PolicyError as error:
            _log.warning("The policy could not be revived: %s", error)
        finally:
            self._reviving.release()

    def close(self) -> None:
        """Close the environments; the policy stays open."""
        self._slots.close()
        self._executor.close()


def _step_barrier(executor: Executor) -> InFlightBarrier | None:
    """Return the barrier at which episodes wait for each other after each step.

    Environments that are called one at a time need none. A crowded executor cannot have one: an
    episode that waits for an environment would wait for an episode that the barrier holds.
    """
    if not executor.parallel:
        return None
    if executor.crowded:
        _warn_not_reproducible(type(executor).__name__)
        return None
    return InFlightBarrier()


@cache
def _warn_not_reproducible(executor: str) -> None:
    _log.warning(
        "The results of this run are not bitwise reproducible, because %s has no deterministic "
        "mode: the batches of the sampler depend on time.",
        executor,
    )


def _check_arguments(policy: object, concurrency: object, retries: object) -> None:
    """Raise a `ConfigurationError` for a wrong argument."""
    check_policy(policy)
    for name, value, lowest in (("concurrency", concurrency, 1), ("retries", retries, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise ConfigurationError(
                f"{name} must be an integer of at least {lowest}, got {value!r}."
            )


def for_each(
    items: Iterable[T],
    make: Callable[[T], Awaitable[Episode]],
    keep: Callable[[Episode], None],
    concurrency: int = CONCURRENCY,
) -> None:
    """Make an episode from each item, and pass each complete episode to `keep`.

    At most `concurrency` episodes are in memory at the same time, including episodes that wait for
    `keep`. A separate thread calls `keep` for one episode at a time, so that writing images does
    not block the sampling.

    Args:
        items: The items, which are read one at a time.
        make: Makes an episode from an item, for example `Collector.play`.
        keep: Receives a complete episode, for example `RunFolder.add`.
        concurrency: Maximum number of episodes that are made at the same time.
    """
    background.run_here(_for_each(items, make, keep, concurrency))


async def _for_each(
    items: Iterable[T],
    make: Callable[[T], Awaitable[Episode]],
    keep: Callable[[Episode], None],
    concurrency: int,
) -> None:
    waiting = iter(items)
    loop = asyncio.get_running_loop()

    async def work() -> None:
        for item in waiting:
            episode = await make(item)
            await loop.run_in_executor(writer, keep, episode)
            del episode  # release its memory while the next one is played

    with ThreadPoolExecutor(1, "visenv-writer") as writer:
        workers = [asyncio.ensure_future(work()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
