"""Plays the groups of one step concurrently, and replaces groups that give no gradient."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from visenv.rollout import Collector, EpisodeSpec
from visenv.types import Episode, Group

from ..journal import EpisodeJournal, JournalEntries
from .base import OnEpisode, Shard
from .samples import SampleOrder
from .selection import MOST_BATCHES, MOST_UNREADABLE, GroupSelector, SelectionConfig

Known = Mapping[tuple[int, int], Episode]
"""Known episodes by group and member."""


class SelectedGroups(NamedTuple):
    """Holds the selected groups of a step.

    Attributes:
        groups: The episodes of each selected group.
        begun: The number of groups that this process has started.
    """

    groups: list[Group]
    begun: int


class StepPlayer:
    """Plays groups of any step, also of several steps concurrently.

    Args:
        collector: The collector that plays episodes.
        groups: The number of groups in a step.
        size: The number of episodes in a group.
        samples: The samples of the groups.
        share: The share of the groups of a step that this process plays.
        selection: The selection of the groups to keep.

    Attributes:
        journal: The journal, which saves finished episodes; None saves none.
        counts: Counts since the last report: ``groups`` that were played, ``zero_std`` groups that
            were replaced because all their rewards are equal, ``unreadable`` groups that were
            replaced because their row cannot be read, and episodes that were ``replayed`` from a
            journal that is not exact.
        replayed_seconds: The seconds in which an earlier process played the latest step; 0 if the
            step was not read from the journal.
    """

    def __init__(
        self,
        collector: Collector,
        groups: int,
        size: int,
        samples: SampleOrder,
        share: Shard,
        selection: SelectionConfig,
    ) -> None:
        self.collector = collector
        self.journal: EpisodeJournal | None = None
        self.counts: Counter[str] = Counter()
        self.replayed_seconds = 0.0
        self._played: dict[str, float] = {}  # the report of the latest step, if it is exact
        self._groups = groups
        self._size = size
        self._samples = samples
        self._share = share
        self._own = share.of(groups)
        self._selection = selection

    async def play(
        self, step: int, on_episode: OnEpisode, first: int = 0, wanted: int | None = None
    ) -> SelectedGroups:
        """Play groups of a step; episodes that are in the journal are read instead.

        Args:
            step: The step, counted from 0.
            on_episode: A function that is called when an episode ends.
            first: The number of groups of the step that were started before.
            wanted: The number of groups to keep; by default the share of this process.
        """
        known: Known = {}
        self.replayed_seconds = 0.0
        began = time.perf_counter()
        if self.journal is not None:
            saved = self.journal.read(step)
            known = saved.episodes
            if saved.kept is not None and not first:
                return self._replay_step(saved, saved.kept, on_episode)
        choice = GroupSelector(len(self._own) if wanted is None else wanted, self._selection, first)
        await self._choose(choice, step, known, on_episode)
        groups = choice.kept()
        self.counts.update(
            groups=choice.begun - first, zero_std=choice.zero_std, unreadable=choice.unreadable
        )
        if self.journal is not None and not first:
            numbered = {self._number(index): group for index, group in groups.items()}
            if self.journal.exact:
                self._played = self._measured()
            seconds = time.perf_counter() - began
            await asyncio.wrap_future(self.journal.finish(step, numbered, self._played, seconds))
        return SelectedGroups(list(groups.values()), choice.begun)

    async def _choose(
        self, choice: GroupSelector, step: int, known: Known, on_episode: OnEpisode
    ) -> None:
        """Play groups until those to keep are decided; an error cancels the others."""
        running: dict[asyncio.Task[Group], int] = {}
        async with _cancelling(running):
            while not choice.done:
                while (index := choice.begin()) is not None:
                    group = self._group(step, self._number(index), known, on_episode)
                    running[asyncio.create_task(group)] = index
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(ended, key=lambda each: running[each]):
                    choice.end(running.pop(task), task.result())

    def _number(self, index: int) -> int:
        """Convert the index of a group among those of this process to its number in the step."""
        replacement = index - len(self._own)
        if replacement < 0:
            return self._own[index]
        return self._groups + replacement * self._share.count + self._share.rank

    async def _group(self, step: int, number: int, known: Known, on_episode: OnEpisode) -> Group:
        """Return a group; the episodes that are not in the journal are played."""
        sample = self._samples.choose(step, number)
        places = [
            EpisodeSpec(sample.seed, number, member, sample.row, sample.env)
            for member in range(self._size)
        ]
        ended: dict[int, Episode] = {}
        running: dict[int, asyncio.Task[Episode]] = {}
        for place in places:
            episode = known.get((number, place.member))
            if episode is not None and (episode.seed, episode.index) == (place.seed, place.index):
                ended[place.member] = self._replay(episode, on_episode)
            else:
                playing = self._play(step, place, on_episode)
                running[place.member] = asyncio.create_task(playing)
        async with _cancelling(running.values()):
            played = await asyncio.gather(*running.values())
        ended |= zip(running, played, strict=True)
        return [ended[member] for member in sorted(ended)]

    async def _play(self, step: int, place: EpisodeSpec, on_episode: OnEpisode) -> Episode:
        episode = await self.collector.play(place, rank=step)
        if self.journal is not None:
            written = self.journal.add(step, episode)
            if not self.journal.exact:  # an exact journal does not use incomplete steps
                await asyncio.wrap_future(written)
        on_episode(episode)
        return episode

    def _replay(self, episode: Episode, on_episode: OnEpisode) -> Episode:
        self.counts["replayed"] += 1
        on_episode(episode)
        return episode

    def _replay_step(
        self, saved: JournalEntries, kept: list[Group], on_episode: OnEpisode
    ) -> SelectedGroups:
        """Return the groups of a step that an earlier process played."""
        for episode in (each for group in kept for each in group):
            self._replay(episode, on_episode)
        if self.journal is not None and self.journal.exact:
            # The metrics of the resumed run do not depend on when it was interrupted.
            del self.counts["replayed"]
            self._played = dict(saved.report)
            self.replayed_seconds = saved.seconds
        return SelectedGroups(kept, MOST_BATCHES * len(self._own) + MOST_UNREADABLE)

    def report(self) -> dict[str, float]:
        """Return the metrics and counts since the last report, by ``rollout/`` names."""
        report = self._measured() | self._played
        self._played = {}
        return report

    def _measured(self) -> dict[str, float]:
        measured = self.collector.stats.take() | {k: float(v) for k, v in self.counts.items()}
        self.counts.clear()
        return {f"rollout/{name}": value for name, value in measured.items()}


@asynccontextmanager
async def _cancelling(tasks: Collection[asyncio.Task[Any]]) -> AsyncIterator[None]:
    """Cancel the remaining tasks at the end, and wait until they have stopped."""
    try:
        yield
    finally:
        left = list(tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
