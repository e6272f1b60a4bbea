"""A policy's episodes: played, filtered, and exported for the trainers of others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from visenv.cli.arguments import check_at_least
from visenv.cli.data.base import (
    CurationCommand,
    EnvStepCommand,
    Episodes,
    PolicyOptions,
    part,
    read,
)


@dataclass(frozen=True, kw_only=True)
class TrajectoriesCommand(PolicyOptions, EnvStepCommand):
    """Let a policy play the agent loop, and keep the episodes."""

    tries: int = 1
    """Episodes of each sample."""
    max_tokens: int = 2048
    """Most tokens in a turn."""

    def run(self) -> None:
        """Play the episodes."""
        from visenv.curation.places import members

        check_at_least(1, tries=self.tries)
        sampling = self._sampling(self.max_tokens)
        label = f"{self._policy_label()} on {self._env_label()}"
        with self._open_policy() as policy:
            play = part("trajectories")
            step = play(self._make_env(), policy, self.out.parent, sampling, label)
            self._work(step, members(self._places(), self.tries), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class _Played(CurationCommand):
    """What every step that reads episodes has."""

    episodes: Episodes
    """File of episodes."""

    def _images(self) -> Path:
        return self.episodes.parent / "images"


@dataclass(frozen=True, kw_only=True)
class FilterCommand(_Played):
    """Keep episodes that are well formed, right, and used a tool."""

    accuracy: float = 1.0
    """Least value of the metric."""
    metric: str = "accuracy"
    """The metric that says how right an episode was."""
    tool_calls: int = 1
    """Fewest tool calls that succeeded."""

    def run(self) -> None:
        """Keep the episodes that pass the filter."""
        wanted = (self.accuracy, self.metric, self.tool_calls)
        step = part("filter")(self._images(), self.out.parent, *wanted)
        self._work(step, read(self.episodes))


@dataclass(frozen=True, kw_only=True)
class ExportEpisodesCommand(_Played):
    """Write episodes as chat messages, images as files, for the trainers of others."""

    layout: Literal["llama-factory", "trl"] = "llama-factory"
    """Who reads them."""

    def run(self) -> None:
        """Write the episodes in the chosen layout."""
        step = part("export")(self._images(), self.out.parent, self.layout)
        self._work(step, read(self.episodes))
