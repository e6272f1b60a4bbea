"""Rating and selecting questions by how much they need a zoom (Mags-RL)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from visenv.cli.data.base import CurationCommand, Rows, part, read

if TYPE_CHECKING:
    from visenv.scorers import Scorer


@dataclass(frozen=True, kw_only=True)
class _Rating(CurationCommand):
    """Base class of the steps that ask a vision-language model."""

    rows: Rows
    """File of rows: id, question, images, response."""
    scorer: str
    """Who rates, for example openai:Qwen/Qwen3-VL-4B-Instruct?base_url=http://localhost:8000/v1."""
    concurrency: int = 16
    """Most rows in work."""

    def _scorer(self) -> Scorer:
        from visenv.scorers import Scorer

        return Scorer.parse(self.scorer)


@dataclass(frozen=True, kw_only=True)
class ZoomScoreCommand(_Rating):
    """Rate how much each question needs a zoom, 1 to 10: easy, medium or hard."""

    dataset: str
    """Name of the rows' data set: vsr, tallyqa or gqa."""

    def run(self) -> None:
        """Rate the need for zooming of the rows."""
        step = part("zoom-score")(self._scorer(), self.dataset)
        self._work(step, read(self.rows), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class ClearCommand(_Rating):
    """Drop rows with an unclear question or a doubtful answer."""

    def run(self) -> None:
        """Ask whether each row is clear."""
        self._work(part("clear")(self._scorer()), read(self.rows), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class StratifyCommand(CurationCommand):
    """Build the easy, medium and hard evaluation sets, in the sizes of the paper."""

    rows: Rows
    """File of rows that zoom-score rated and clear kept."""

    def run(self) -> None:
        """Select rows by data set and score."""
        self._work(part("stratify")(), read(self.rows))


@dataclass(frozen=True, kw_only=True)
class MagsTrainCommand(CurationCommand):
    """Select the 20 training samples of a stage, with no image of other files."""

    rows: Rows
    """File of rows that zoom-score rated and clear kept."""
    stage: Literal["stage1", "stage2"]
    """Which stage."""
    without: tuple[Path, ...] = ()
    """Files of rows whose images are left out: the evaluation, and the other stage."""

    def run(self) -> None:
        """Select the training rows of a stage."""
        step = part("mags-train")(self.stage, [read(path) for path in self.without])
        self._work(step, read(self.rows))
