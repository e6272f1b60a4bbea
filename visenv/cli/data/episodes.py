"""Plays a policy's episodes, filters them, and exports them for other trainers."""

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
    """Play the agent loop with a policy, and save the episodes."""

    tries: int = 1
    """Number of episodes for each sample."""
    max_tokens: int = 2048
    """Maximum number of tokens in a turn."""

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
    """Holds the options of steps that read episodes."""

    episodes: Episodes
    """File of episodes."""

    def _images(self) -> Path:
        return self.episodes.parent / "images"


@dataclass(frozen=True, kw_only=True)
class FilterCommand(_Played):
    """Keep episodes that are well formed and correct, and that used a tool."""

    accuracy: float = 1.0
    """Minimum value of the metric."""
    metric: str = "accuracy"
    """The metric that measures how right an episode was."""
    tool_calls: int = 1
    """Minimum number of successful tool calls."""

    def run(self) -> None:
        """Keep the episodes that pass the filter."""
        wanted = (self.accuracy, self.metric, self.tool_calls)
        step = part("filter")(self._images(), self.out.parent, *wanted)
        self._work(step, read(self.episodes))


@dataclass(frozen=True, kw_only=True)
class ExportEpisodesCommand(_Played):
    """Write episodes as chat messages, with images as files, for other trainers."""

    layout: Literal["llama-factory", "trl"] = "llama-factory"
    """The format of the output."""

    def run(self) -> None:
        """Write the episodes in the chosen layout."""
        step = part("export")(self._images(), self.out.parent, self.layout)
        self._work(step, read(self.episodes))
