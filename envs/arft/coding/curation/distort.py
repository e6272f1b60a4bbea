"""Distort: writes distorted samples to disk, balanced by a plan, in the layout of MAT-Coding."""

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
    """Turns the rows of `plan_lines` into samples with something wrong.

    A row has the fields of MAT-Coding, ``{id, question, answers, ori_image_path,
    processed_image_path, type, split}``, and ``distortions`` with their parameters, ``box`` of a
    crop and ``options`` where there are some, so that ``mat_coding:<folder>`` reads it. Images are
    PNG files in ``images`` beside the rows, each once, named by its pixels' hash.

    Args:
        source: Where samples come from.
        folder: Where the rows are written.
        seed: Of samples and parameters.
        label: What the journal calls the source.
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
        """Make the step for a source that is named, and the rows that it works on.

        Args:
            data: A data set of questions about one image, such as ``"textvqa:<folder>"``, or
                ``"procedural"``.
            folder: Where the rows are written.
            plan: A key of `PLANS`: how often each problem occurs.
            problems: What is to be wrong instead of a plan, each as often, for example
                ``["rotation90+noise"]``.
            count: How many samples; by default as many as the plan, or 100 of each problem.
            seed: Of the plan's order, of samples and of parameters.

        Raises:
            UnknownNameError: If there is no such data set or problem.
            ConfigurationError: If there would be no samples, or the source has fewer.
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
        """Return the sample, and its image before the distortion."""
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
    """Return a row for each sample of a plan, shuffled; a longer list repeats the plan.

    Args:
        plan: What there is to be.
        seed: Shuffles.
        count: How many; those of the plan by default.
        rows: How many the source has, if it has an end.

    Raises:
        ConfigurationError: If there would be none, or the source has fewer.
    """
    listed = schedule(plan, seed)
    count = len(listed) if count is None else count
    if count < 1 or (rows is not None and count > rows):
        raise ConfigurationError(
            f"{count} samples cannot be made of {rows or 'any number of'} rows."
        )
    return [
        row_line(
            {"id": f"{place:05}", "place": place, "problems": "+".join(listed[place % len(listed)])}
        )
        for place in range(count)
    ]
