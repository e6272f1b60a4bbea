"""Episodes that the policy plays when the step asks for them."""

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
    """Plays episodes on fresh scenes, in groups, with the weights of the step.

    Args:
        collector: Plays.
        policy: What learns, to switch it to sampling.
        groups: Groups in a step.
        num_generations: Episodes in a group.
        seed: The run's seed.
        share: Which of a step's groups this process plays.
        selection: Which of the groups played are kept; by default the first ones, as they are.
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
        return run_here(self._player.play(step, on_episode)).groups

    @override
    def report(self) -> dict[str, float]:
        """Return how well the time was used (`Meter.take`), and counts of episodes."""
        return self._player.report()
