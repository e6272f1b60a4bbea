"""Writes distorted samples to disk, balanced by a plan, in the layout of MAT-Coding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

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


class Distort(CurationStep):
    """Distorts the samples that are listed by `plan_lines`.

    A row has the fields of MAT-Coding, ``{id, question, answers, ori_image_path,
    processed_image_path, type, split}``, and ``distortions`` with their parameters, the ``box`` of
    a crop, and ``options`` if the sample has some, so that ``mat_coding:<folder>`` can read it.
    Images are PNG files in ``images`` beside the rows, named by the hash of their pixels; equal
    images are written once.

    Args:
        source: The source of the samples.
        folder: The folder to which rows are written.
        seed: The seed of samples and parameters.
        label: The name of the source in the journal.
    """

    name: ClassVar[str] = "distort"

    def __init__(
        self, source: DistortedWorld | DistortedRows, folder: Path, seed: int, label: str
    ) -> None:
        self._source = source
        self._folder = folder
        self._seed = seed
        self._label = label

    @classmethod
    def planned(
        cls,
        data: str,
        folder: Path,
        plan: str = "train",
        problems: Sequence[str] = (),
        count: int | None = None,
        seed: int = 0,
    ) -> tuple[Distort, list[InputRow]]:
        """Create the step for a named source, and its input rows.

        Args:
            data: A data set of questions about one image, such as ``"textvqa:<folder>"``, or
                ``"procedural"``.
            folder: The folder to which rows are written.
            plan: A key of `PLANS`: how often each problem occurs.
            problems: Problems to use instead of a plan, in equal numbers, for example
                ``["rotation90+noise"]``.
            count: The number of samples; by default that of the plan, or 100 of each problem.
            seed: The seed of the plan's order, the samples and the parameters.

        Raises:
            UnknownNameError: If there is no such data set or problem.
            ConfigurationError: If the count is 0, or larger than the source.
            DataError: If the data set cannot be read.
        """
        chosen: Plan = PLANS[plan]
        if problems:
            chosen = dict.fromkeys(map(read_problems, problems), 100)
        if data == "procedural":
            world = procedural(plan=chosen)
            return cls(world, folder, seed, data), plan_lines(chosen, seed, count)
        rows = DistortedRows(open_data(data), chosen, seed)
        return cls(rows, folder, seed, data), plan_lines(chosen, seed, count, len(rows))

    @override
    def settings(self) -> dict[str, Any]:
        return {"source": self._label, "seed": self._seed}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        sample, original = self._made(row)
        images = [original, *sample.images]
        paths = save_images(self._folder / "images", images)
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
        rng = np.random.default_rng(seed_of(self._seed, place))
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
            f"{count} samples cannot be made from {rows or 'any number of'} rows."
        )
    return [
        row_line(
            {"id": f"{place:05}", "place": place, "problems": "+".join(listed[place % len(listed)])}
        )
        for place in range(count)
    ]
