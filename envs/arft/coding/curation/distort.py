"""Writes distorted samples to disk, balanced by a plan, in the layout of MAT-Coding."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import InputRow, Row, row_line
from visenv.curation.step import CurationStep, seed_of
from visenv.data.open import open_data
from visenv.episodes import save_images
from visenv.errors import ConfigurationError
from visenv.types import Image, Sample

from ..ground_truth import CodingTruth
from ..world.plans import PLANS, Plan, read_problems, schedule
from ..world.questions import procedural
from ..world.sources import DistortedRows, DistortedWorld


@dataclass(eq=False)
class Distort(CurationStep):
    """Makes samples whose images are rotated, dark, blurred etc., in the layout of MAT-Coding.

    ArftCoding-v0 plays them with ``--data mat_coding:<folder of the file>``.

    A row has the fields of MAT-Coding, ``{id, question, answers, ori_image_path,
    processed_image_path, type, split}``, and ``distortions`` with their parameters, the ``box`` of
    a crop, and ``options`` if the sample has some, so that ``mat_coding:<folder>`` can read it.
    Images are PNG files in ``images`` beside the rows, named by the hash of their pixels; equal
    images are written once.
    """

    name: ClassVar[str] = "distort"
    hidden: ClassVar[tuple[str, ...]] = ("source",)

    folder: Path
    data: str = "procedural"
    """Data set of questions about one image, or procedural: pictures in eight layouts."""
    plan: Literal["train", "test"] = "train"
    """How often each problem occurs: as in the paper's 1,200 training samples, or its 200 test
    samples.
    """
    problems: tuple[str, ...] = ()
    """Instead of a plan: the problems, all equally often, for example rotation90+noise."""
    samples: int | None = None
    """Number of samples; by default as many as the plan, or 100 of each problem."""
    seed: int = 0
    """Seed of the plan's order, the samples and the parameters."""
    source: DistortedWorld | DistortedRows | None = None
    """The distorted samples, instead of those of `data`."""

    def __post_init__(self) -> None:
        self._plan: Plan = (
            dict.fromkeys(map(read_problems, self.problems), 100)
            if self.problems
            else PLANS[self.plan]
        )
        self._source = self._open() if self.source is None else self.source

    def _open(self) -> DistortedWorld | DistortedRows:
        if self.data == "procedural":
            return procedural(plan=self._plan)
        return DistortedRows(open_data(self.data), self._plan, self.seed)

    @override
    def rows(self) -> list[InputRow]:
        """Return a row for each sample of the plan."""
        most = len(self._source) if isinstance(self._source, DistortedRows) else None
        return plan_lines(self._plan, self.seed, self.samples, most)

    @override
    def settings(self) -> dict[str, Any]:
        return {"source": self.data, "seed": self.seed}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        sample, original = self._made(row)
        images = [original, *sample.images]
        paths = save_images(self.folder / "images", images)
        before, after = (f"images/{path.name}" for path in paths)
        truth = sample.truth_as(CodingTruth)
        return kept(
            {
                "id": row["id"],
                "question": sample.question,
                "answers": list(sample.answers),
                "ori_image_path": before,
                "processed_image_path": after,
                "type": list(truth.problems),
                "split": truth.split,
                "distortions": [each.as_row() for each in truth.distortions],
                **({} if truth.box is None else {"box": list(truth.box)}),
                **({"options": list(truth.options)} if truth.options else {}),
            }
        )

    def _made(self, row: Row) -> tuple[Sample, Image]:
        """Return the distorted sample, and its image before the distortion."""
        place = row["place"]
        if isinstance(self._source, DistortedRows):
            return self._source[place], self._source.source[place].images[0]
        problems = read_problems(row["problems"])
        rng = np.random.default_rng(seed_of(self.seed, place))
        clean, sample = self._source.made(problems, rng)
        return sample, clean.images[0]


def plan_lines(
    plan: Plan, seed: int, count: int | None = None, rows: int | None = None
) -> list[InputRow]:
    """Return a row for each sample of a plan, shuffled; a larger `count` repeats the plan.

    Args:
        plan: The number of samples with each combination of problems.
        seed: The seed of the order.
        count: The number of rows; by default that of the plan.
        rows: The number of rows of the source, if it is finite.

    Raises:
        ConfigurationError: If the count is 0, or larger than the source.
    """
    listed = schedule(plan, seed)
    count = len(listed) if count is None else count
    if count < 1 or (rows is not None and count > rows):
        raise ConfigurationError(
            "The number of samples must be at least 1"
            f"{'' if rows is None else f' and at most that of the rows, {rows}'}, got {count}."
        )
    return [
        row_line(
            {"id": f"{place:05}", "place": place, "problems": "+".join(listed[place % len(listed)])}
        )
        for place in range(count)
    ]
