"""Rates and selects questions by their need for a zoom (Mags-RL)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from visenv.cli.data.base import CurationCommand, Rows, part, read

if TYPE_CHECKING:
    from visenv.scorers import Scorer


@dataclass(frozen=True, kw_only=True)
class _Rating(CurationCommand):
    """Holds the options of steps that use a vision-language model."""

    rows: Rows
    """File of rows: id, question, images, response."""
    scorer: str
    """The scorer that rates, for example
    openai:Qwen/Qwen3-VL-4B-Instruct?base_url=http://localhost:8000/v1.
    """
    concurrency: int = 16
    """Number of rows that are processed at the same time."""

    def _scorer(self) -> Scorer:
        from visenv.scorers import Scorer

        return Scorer.parse(self.scorer)


@dataclass(frozen=True, kw_only=True)
class ZoomScoreCommand(_Rating):
    """Rate from 1 to 10 how much each question needs a zoom: easy, medium or hard."""

    dataset: str
    """Name of the rows' data set: vsr, tallyqa or gqa."""

    def run(self) -> None:
        """Rate how much each row needs a zoom."""
        step = part("zoom-score")(self._scorer(), self.dataset)
        self._work(step, read(self.rows), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class ClearCommand(_Rating):
    """Drop rows with an unclear question or a doubtful answer."""

    def run(self) -> None:
        """Check with the model whether each row is clear."""
        self._work(part("clear")(self._scorer()), read(self.rows), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class StratifyCommand(CurationCommand):
    """Build the easy, medium and hard evaluation sets, with the sizes of the paper."""

    rows: Rows
    """File of rows that zoom-score rated and that clear kept."""

    def run(self) -> None:
        """Select rows by data set and score."""
        self._work(part("stratify")(), read(self.rows))


@dataclass(frozen=True, kw_only=True)
class MagsTrainCommand(CurationCommand):
    """Select the 20 training samples of a stage, without images that other files use."""

    rows: Rows
    """File of rows that zoom-score rated and that clear kept."""
    stage: Literal["stage1", "stage2"]
    """The training stage."""
    without: tuple[Path, ...] = ()
    """Files of rows whose images are excluded: the evaluation set, and the other stage."""

    def run(self) -> None:
        """Select the training rows of a stage."""
        if not self.without:
            print("Without --without, training may use images of the evaluation set.")
        step = part("mags-train")(self.stage, [read(path) for path in self.without])
        self._work(step, read(self.rows))
