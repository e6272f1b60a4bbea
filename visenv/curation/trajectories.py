"""Generates trajectories by a stronger policy, and keeps those worth learning from (section 3.2).

The filter reads only the event log and the environment's metrics, which no policy can write;
statements of a turn about itself do not count.

The output is a file of episodes (`visenv.episodes`) with images in a folder next to it:
`read_episodes` reads it, `visenv view` shows it, `TrainablePolicy.encode` turns it into training
data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, failed, kept
from visenv.curation.lines import Row
from visenv.curation.places import place_of
from visenv.curation.step import CurationStep
from visenv.episodes import episode_from_json, episode_to_json, save_images
from visenv.errors import ConfigurationError, DataError
from visenv.policy import Policy
from visenv.rollout import Collector
from visenv.types import Episode, EventLog, Malformed, Sampling

SAMPLING = Sampling(max_tokens=2048)


@dataclass(eq=False)
class Filter(CurationStep):
    """Keeps episodes that are well formed, have a right answer, and used a tool.

    The first condition that is violated is the reason for dropping an episode: the format (the
    episode ended with an answer, and none of its turns was malformed), the accuracy (the metric is
    at least `accuracy`), or the behavior (at least `tool_calls` calls succeeded).

    Raises:
        ConfigurationError: If `tool_calls` is negative.
    """

    name: ClassVar[str] = "filter"

    images: Path
    folder: Path
    accuracy: float = 1.0
    """Minimum value of the metric."""
    metric: str = "accuracy"
    """The metric that measures how right an episode was, 0 to 1."""
    tool_calls: int = 1
    """Minimum number of successful tool calls; 0 for data that need no tools."""

    def __post_init__(self) -> None:
        if self.tool_calls < 0:
            raise ConfigurationError(f"tool_calls must be at least 0, got {self.tool_calls}.")
        self._out_images = self.folder / "images"

    @override
    def settings(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "metric": self.metric,
            "tool_calls": self.tool_calls,
        }

    @override
    async def decide(self, row: Row) -> RowOutcome:
        episode = episode_from_json(row, self.images)
        reason = _format(episode) or self._right(episode) or self._behavior(episode)
        if reason:
            return dropped(reason)
        if self._out_images.absolute() != self.images.absolute():
            save_images(self._out_images, episode.images)
        return kept(row)

    def _right(self, episode: Episode) -> str:
        if self.metric not in episode.metrics:
            there = ", ".join(episode.metrics) or "none"
            raise DataError(f"it has no metric {self.metric!r}; it has: {there}")
        value = episode.metrics[self.metric]
        if not isinstance(value, int | float):  # the file may contain any value
            raise DataError(f"its metric {self.metric!r} is not a number: {value!r:.80}")
        return "" if value >= self.accuracy else "accuracy: wrong"  # NaN counts as wrong

    def _behavior(self, episode: Episode) -> str:
        calls = EventLog(episode.events).tool_calls
        succeeded = [call for call in calls if call.ok]
        if len(succeeded) >= self.tool_calls:
            return ""
        if not calls:
            return "behaviour: no tool called"
        return f"behaviour: {'too few calls' if succeeded else 'no call'} succeeded"


def _format(episode: Episode) -> str:
    if episode.status != "terminated":
        return f"format: {episode.status}"
    if any(isinstance(event, Malformed) for event in episode.events):
        return "format: malformed turn"
    return ""


@dataclass(eq=False)
class Trajectories(CurationStep):
    """Plays an environment with a policy, and keeps the episodes.

    An aborted episode (a service failed, or a sample could not be read) fails its row, so that the
    next run plays it again.
    """

    name: ClassVar[str] = "trajectories"
    default_tries: ClassVar[int] = 1

    make_env: Callable[[], gym.Env[Any, str]]
    policy: Policy[Any]
    folder: Path
    sampling: Sampling = SAMPLING
    label: str = ""

    def __post_init__(self) -> None:
        self._collector = Collector(self.make_env, self.policy, self.sampling)

    @override
    def settings(self) -> dict[str, Any]:
        sampling = self._collector.sampling
        return {
            "players": self.label,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
        }

    @override
    async def decide(self, row: Row) -> RowOutcome:
        episode = await self._collector.play(place_of(row))
        if episode.status == "aborted":
            return failed("aborted", episode.end_reason)
        save_images(self.folder / "images", episode.images)
        return kept({"id": row["id"], **episode_to_json(episode)})

    @override
    def close(self) -> None:
        """Close the environments; the policy stays open."""
        self._collector.close()
