"""Writes grounded reasoning traces: rollouts that cite points in an image or video (Argos)."""

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
    Rows,
    part,
    read,
)


@dataclass(frozen=True, kw_only=True)
class ArgosDraftCommand(PolicyOptions, EnvStepCommand):
    """Write one draft answer to each sample."""

    max_tokens: int = 1024
    """Maximum number of tokens in an answer."""

    def run(self) -> None:
        """Write the draft answers."""
        sampling = self._sampling(self.max_tokens)
        places, label = self._places(), f"{self._policy_label()} on {self._env_label()}"
        with self._open_policy() as policy:
            draft = part("argos-draft")
            step = draft(self._make_env(), policy, self.out.parent, sampling, label)
            self._work(step, places, self.concurrency)


@dataclass(frozen=True, kw_only=True)
class _Reading(CurationCommand):
    """Holds the options of steps in which a model reads the text of another model."""

    rows: Rows
    """File of rows that the previous step wrote."""
    scorer: str
    """The scorer that reads, for example openai:my-model?base_url=http://localhost:8000/v1."""
    concurrency: int = 16
    """Number of rows that are processed at the same time."""

    def _read(self, name: str) -> None:
        from visenv.scorers import Scorer

        self._work(part(name)(Scorer.parse(self.scorer)), read(self.rows), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class ArgosEntitiesCommand(_Reading):
    """List up to 10 entities of each draft, its interactions and, for videos, timed actions."""

    def run(self) -> None:
        """List the entities of the drafts."""
        self._read("argos-entities")


@dataclass(frozen=True, kw_only=True)
class ArgosPointCommand(EnvStepCommand):
    """Point to the entities in each image or frame, with a pointing model."""

    pointing_model: str
    """The pointing model: a scorer, for example openai:allenai/Molmo-7B-D-0924?base_url=…, or
    oracle.
    """
    pointing_coordinates: Literal["pixels", "relative1000"] = "pixels"
    """Unit of the points that the model writes as JSON: pixels (Qwen2.5-VL), or from 0 to 1000
    (Qwen3-VL). Molmo's points are always from 0 to 100.
    """

    def run(self) -> None:
        """Point to the entities."""
        places, label = self._places(), self._env_label()
        step = part("argos-point")(
            self._make_env(), self.pointing_model, label, self.pointing_coordinates
        )
        self._work(step, places, self.concurrency)


@dataclass(frozen=True, kw_only=True)
class ArgosOverlayCommand(CurationCommand):
    """Draw the points with their coordinates on images, and the number and time on frames."""

    rows: Rows
    """File of rows with points."""

    def run(self) -> None:
        """Draw the points on the images."""
        self._work(part("argos-overlay")(self.out.parent), read(self.rows))


@dataclass(frozen=True, kw_only=True)
class ArgosTracesCommand(PolicyOptions, EnvStepCommand):
    """Write reasoning traces about images with overlays, which cite coordinates, with a teacher."""

    temperature: float = 0.6
    """Sampling temperature."""
    tries: int = 8
    """Number of traces for each sample."""
    max_tokens: int = 6144
    """Maximum number of tokens in a trace."""

    def run(self) -> None:
        """Write the traces."""
        from visenv.curation.places import members

        check_at_least(1, tries=self.tries)
        sampling = self._sampling(self.max_tokens)
        places, label = self._places(), f"{self._policy_label()} on {self._env_label()}"
        with self._open_policy() as policy:
            step = part("argos-traces")(self._make_env(), policy, sampling, label)
            self._work(step, members(places, self.tries), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class ArgosExtractCommand(_Reading):
    """List the points and the times that each trace cites."""

    def run(self) -> None:
        """List the points and times in the traces."""
        self._read("argos-extract")


@dataclass(frozen=True, kw_only=True)
class ArgosScoreCommand(EnvStepCommand):
    """Convert traces to episodes, scored by the environment's verifier."""

    def run(self) -> None:
        """Score the traces."""
        places = self._places()
        step = part("argos-score")(self._make_env(), self.out.parent, self._env_label())
        self._work(step, places, self.concurrency)


@dataclass(frozen=True, kw_only=True)
class ArgosReformatCommand(CurationCommand):
    """Rewrite traces: points become tags, and times become phrases."""

    episodes: Episodes
    """File of episodes that argos-score made."""

    def run(self) -> None:
        """Rewrite the episodes."""
        images: Path = self.episodes.parent / "images"
        step = part("argos-reformat")(images, self.out.parent)
        self._work(step, read(self.episodes))
