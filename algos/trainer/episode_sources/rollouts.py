"""Plays the episodes of a step when the step requests them."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.background import run_here
from visenv.policy import TrainablePolicy
from visenv.rollout import Collector
from visenv.types import Group

from .base import EpisodeSource, OnEpisode, Shard
from .player import StepPlayer
from .samples import SampleOrder
from .selection import SelectionConfig


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
