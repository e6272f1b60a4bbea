"""Distorts images, which a policy then repairs by code, as in MAT-Coding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from visenv.cli.arguments import check_at_least
from visenv.cli.data.base import CurationCommand, part


@dataclass(frozen=True, kw_only=True)
class DistortCommand(CurationCommand):
    """Make samples whose images are rotated, dark, blurred etc., in the layout of MAT-Coding.

    ArftCoding-v0 plays them with --data mat_coding:<folder of the file>.
    """

    data: Annotated[str, Positional, arg(metavar="NAME:FOLDER")] = "procedural"
    """Data set of questions about one image, or procedural: documents and scenes."""
    plan: Literal["train", "test"] = "train"
    """How often each problem occurs: as in the paper's 1,200 training samples, or its 200 test
    samples.
    """
    problems: tuple[str, ...] = ()
    """Instead of a plan: the problems, all equally often, for example rotation90+noise."""
    samples: int | None = None
    """Number of samples; by default as many as the plan, or 100 of each problem."""
    seed: int = 0
    """Seed of the random choices."""

    def run(self) -> None:
        """Make distorted images."""
        check_at_least(1, samples=self.samples)
        folder = self.out.parent
        step, lines = part("distort").planned(
            self.data, folder, self.plan, self.problems, self.samples, self.seed
        )
        self._work(step, lines)
