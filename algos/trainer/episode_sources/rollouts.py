"""Plays the episodes of a step when it begins, or of later steps during the update."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from visenv.background import run_here
from visenv.errors import ConfigurationError, RunError
from visenv.policy import TrainablePolicy
from visenv.rollout import Collector
from visenv.types import Episode, Group

from .base import EpisodeSource, OnEpisode, Shard
from .player import SelectedGroups, StepPlayer
from .samples import SampleOrder
from .selection import SelectionConfig

Result = TypeVar("Result")
_SECONDS_TO_CLOSE = 10.0


class RolloutSource(EpisodeSource):
    """Plays groups of episodes on new samples, with the weights at the start of the step.

    Args:
        collector: The collector that plays episodes.
        policy: The policy that is trained, which is switched to sampling.
        groups: The number of groups in a step.
        num_generations: The number of episodes in a group.
        seed: The seed of the run.
        share: The share of the groups of a step that this process plays.
        selection: The selection of the groups to keep; by default the first ones.
    """

    def __init__(
        self,
        collector: Collector,
        policy: TrainablePolicy[Any],
        groups: int,
        num_generations: int,
        seed: int,
        share: Shard = Shard(),  # noqa: B008 - frozen
        selection: SelectionConfig = SelectionConfig(),  # noqa: B008 - frozen
    ) -> None:
        self.size = groups * num_generations
        self._policy = policy
        self.samples = SampleOrder(collector.mixture, groups, seed)
        self._player = StepPlayer(
            collector, groups, num_generations, self.samples, share, selection
        )

    @override
    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        self._policy.train_mode(False)
        self._player.journal = self.journal
        groups = run_here(self._player.play(step, on_episode)).groups
        self.replayed_seconds = self._player.replayed_seconds
        return groups

    @override
    def report(self) -> dict[str, float]:
        """Return the metrics of the collector (`Meter.take`), and counts of episodes."""
        return self._player.report()


class AsyncRolloutSource(EpisodeSource):
    """Plays episodes like `RolloutSource`, but in a separate thread and during the update.

    Each step plays the same samples as with `RolloutSource`, but its episodes start up to
    `max_staleness` steps early, so the weights of all its tokens are at most that many steps old. A
    group can be older if new weights did not reach the sampler. Such a group is dropped and
    replaced. With `max_staleness` = 0, nothing is played in advance.

    Args:
        collector: The collector, whose policy is an engine and not the trained policy itself.
        policy: The policy that is trained; its `version` determines the age of tokens.
        groups: The number of groups in a step.
        num_generations: The number of episodes in a group.
        seed: The seed of the run.
        share: The share of the groups of a step that this process plays.
        selection: The selection of the groups to keep; by default the first ones.
        max_staleness: The maximum number of steps since a token was sampled.
        updates: The number of weight updates in a step, by which versions are counted.
        steps: The number of steps of the run, after which no step is started; None sets no end.

    Raises:
        ConfigurationError: If the collector would sample with weights that are being updated.
    """

    def __init__(
        self,
        collector: Collector,
        policy: TrainablePolicy[Any],
        groups: int,
        num_generations: int,
        seed: int,
        share: Shard = Shard(),  # noqa: B008 - frozen
        selection: SelectionConfig = SelectionConfig(),  # noqa: B008 - frozen
        *,
        max_staleness: int,
        updates: int = 1,
        steps: int | None = None,
    ) -> None:
        if max_staleness < 0:
            raise ConfigurationError(f"max_staleness must be at least 0, got {max_staleness}.")
        if max_staleness and collector.policy is policy:
            raise ConfigurationError(
                "With max_staleness, episodes are sampled while weights change, so a separate "
                "engine is needed: set max_staleness to 0, or pass a sampler."
            )
        self.size = groups * num_generations
        self._policy = policy
        self.samples = SampleOrder(collector.mixture, groups, seed, max_staleness)
        self._player = StepPlayer(
            collector, groups, num_generations, self.samples, share, selection
        )
        self._max_staleness = max_staleness
        self._updates = updates
        self._steps = steps
        self._thread = _LoopThread()
        self._runs: dict[int, _Run] = {}
        self._waited = 0.0
        self._ages: list[int] = []
        self._dropped = 0

    @override
    def groups(self, step: int, on_episode: OnEpisode) -> list[Group]:
        """Start the groups of the next steps, then return the groups of this step.

        Raises:
            RunError: If every group is too old, because weights do not reach the sampler.
        """
        began = time.monotonic()
        self._policy.train_mode(False)
        self._player.journal = self.journal
        end = step + self._max_staleness + 1
        for coming in range(step, end if self._steps is None else min(end, self._steps)):
            if coming not in self._runs:
                self._runs[coming] = _Run(self._thread, self._player, coming)
        kept = self._runs.pop(step).wait(on_episode)
        groups = self._fresh(step, kept, on_episode)
        self._waited += time.monotonic() - began
        return groups

    @override
    def report(self) -> dict[str, float]:
        """Return the report of `RolloutSource`, the age of groups in steps, and the waiting time.

        ``rollout/staleness`` is the mean age of the groups, and ``rollout/stalest`` the largest.
        ``rollout/stale`` is the number of dropped groups. ``rollout/waited_seconds`` is the time
        that the trainer waited for episodes.
        """

        async def measured() -> dict[str, float]:
            return self._player.report()

        report = self._thread.submit(measured()).result() | {
            "rollout/staleness": float(np.mean(self._ages)) if self._ages else 0.0,
            "rollout/stalest": float(max(self._ages, default=0)),
            "rollout/stale": float(self._dropped),
            "rollout/waited_seconds": self._waited,
        }
        self._ages, self._dropped, self._waited = [], 0, 0.0
        return report

    @override
    def close(self) -> None:
        """Cancel the episodes that are being played."""
        self._thread.close()
        self._runs.clear()

    def _fresh(self, step: int, kept: SelectedGroups, on_episode: OnEpisode) -> list[Group]:
        """Return the groups with new groups in place of those that are too old."""
        fresh = self._young(kept.groups)
        missing = len(kept.groups) - len(fresh)
        if missing:
            more = _Run(self._thread, self._player, step, kept.begun, missing)
            fresh += self._young(more.wait(on_episode).groups)
        if not fresh:
            raise RunError(
                f"Every group of step {step + 1} was sampled with weights more than "
                f"{self._max_staleness} steps old: they do not reach the policy that samples."
            )
        return fresh

    def _young(self, groups: list[Group]) -> list[Group]:
        ages = [self._age(group) for group in groups]
        self._ages += [age for age in ages if age <= self._max_staleness]
        self._dropped += sum(age > self._max_staleness for age in ages)
        pairs = zip(groups, ages, strict=True)
        return [group for group, age in pairs if age <= self._max_staleness]

    def _age(self, group: Group) -> int:
        """Return the number of steps since the weights that sampled the group's oldest token."""
        segments = [segment for episode in group for segment in episode.segments]
        versions = [each.policy_version[each.loss_mask] for each in segments if each.turns]
        oldest = min((int(each.min()) for each in versions if each.size), default=None)
        if oldest is None:
            return 0
        return max(0, -(-(self._policy.version - oldest) // self._updates))


class _Run:
    """Represents a step that the other thread is playing."""

    def __init__(
        self,
        thread: _LoopThread,
        player: StepPlayer,
        step: int,
        first: int = 0,
        wanted: int | None = None,
    ) -> None:
        self._heard: SimpleQueue[Episode | None] = SimpleQueue()

        async def play() -> SelectedGroups:
            try:
                return await player.play(step, self._heard.put, first, wanted)
            finally:
                self._heard.put(None)

        self._kept = thread.submit(play())

    def wait(self, on_episode: OnEpisode) -> SelectedGroups:
        """Call `on_episode` for each episode until the last one has ended; reraise exceptions."""
        for episode in iter(self._heard.get, None):
            on_episode(episode)
        return self._kept.result()


class _LoopThread:
    """Runs an event loop in a separate thread, which is started when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine in the thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            run = self._loop.run_forever
            self._thread = threading.Thread(target=run, name="visenv-ahead", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancel all coroutines; a coroutine that blocks the loop is abandoned."""
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        ended = asyncio.run_coroutine_threadsafe(_cancel_others(), loop)
        ended.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        self._thread.join(_SECONDS_TO_CLOSE)
        if not self._thread.is_alive():
            loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
