"""Creates distorted samples from any questions about images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

import numpy as np

from visenv.curation.step import seed_of
from visenv.data.source import IndexedSource, check_declared_truth
from visenv.errors import ConfigurationError, DataError
from visenv.types import Image, QuestionTruth, Sample
from visenv.worlds.recent import RECENT

from ..ground_truth import CodingTruth, Distortion, Region
from . import kinds
from .kinds import MILD
from .legibility import Pictures, telling_distortions
from .plans import CROP, PLANS, Plan, Problems, named, schedule, split_of, without_crops

_MARGIN = 0.5
"""Margin of a crop on each side of the target, relative to the target's width or height."""
_DISTORTED = (QuestionTruth, NoneType)
"""The types of ground truth of samples that can be distorted."""
_DRAWN_ANEW = 4
"""Number of pictures that are drawn of one text before other values are written."""
_ATTEMPTS = 40 * _DRAWN_ANEW
"""Number of pictures that are drawn before an error is raised."""
_NOTHING = "A plan needs at least one problem; without a known region, one other than crops."


def distorted(sample: Sample, problems: Problems, rng: np.random.Generator) -> Sample:
    """Return the sample with these problems, with mild strengths because nothing checks it.

    Args:
        sample: A sample with one image; for a crop, also with a ``target_box``.
        problems: The problems of the returned sample.
        rng: Draws the parameters.

    Raises:
        DataError: If it does not have one image, or the region to crop is unknown.
    """
    made = [
        kinds.draw(name, rng, MILD.get(name), rng.random())
        for name in problems
        if name in kinds.KINDS
    ]
    return with_problems(sample, problems, made)


def with_problems(sample: Sample, problems: Problems, made: Sequence[Distortion]) -> Sample:
    """Return the sample with these problems.

    Args:
        sample: A sample with one image; for a crop, also with a ``target_box``.
        problems: The problems of the returned sample.
        made: The distortions among them, in order.

    Raises:
        DataError: If it does not have one image, or the region to crop is unknown.
    """
    if len(sample.images) != 1:
        raise DataError(f"Sample {sample.id!r} has {len(sample.images)} images; it must have one.")
    image = sample.images[0]
    truth = coding_truth(
        problems,
        made,
        box=_region(sample) if problems == CROP else None,
        options=sample.truth_as(QuestionTruth).options,
    )
    return replace(
        sample,
        id=f"{sample.id}/{named(problems)}",
        images=(Image.from_pixels(kinds.apply_all(image.pixels, made)) if made else image,),
        kind=named(problems),
        ground_truth=truth,
    )


def coding_truth(
    problems: Problems,
    distortions: Iterable[Distortion],
    *,
    split: str = "",
    box: Region | None = None,
    options: tuple[str, ...] = (),
) -> CodingTruth:
    """Return the ground truth of a sample with these problems.

    Args:
        problems: The problems of the sample.
        distortions: The distortions with their parameters.
        split: The split of the sample; by default that of the problems (`split_of`).
        box: The region to crop, if the problem is a crop.
        options: All possible answers.
    """
    split = split or split_of(problems)
    return CodingTruth(
        problems=problems,
        distortions=tuple(distortions),
        split=split,
        steps=("problem", *(() if problems == ("none",) else ("code",)), "answer"),
        labels={"split": split, "problem": named(problems)},
        box=box,
        options=options,
    )


def _tested(sample: Sample, clean: Sample, pictures: Pictures) -> Sample:
    """Return the sample with the test of whether an image that a program wrote is readable."""
    box = clean.truth_as(QuestionTruth).target_box
    capital = 0 if box is None else int(min(box[2] - box[0], box[3] - box[1]))
    truth = replace(sample.truth_as(CodingTruth), legibility=pictures.legibility, capital=capital)
    return replace(sample, ground_truth=truth)


def _region(sample: Sample) -> Region:
    """Return the target's box with a margin, in thousandths."""
    box, size = sample.truth_as(QuestionTruth).target_box, sample.images[0].size
    if box is None:
        raise DataError(f"Sample {sample.id!r} cannot be cropped, because it has no target_box.")
    grown: list[float] = []
    for edge, side in enumerate((-1, -1, 1, 1)):
        axis = edge % 2
        margin = _MARGIN * (box[axis + 2] - box[axis])
        grown.append(1000 * (box[edge] + side * margin) / size[axis])
    left, top, right, bottom = (min(1000, max(0, round(edge))) for edge in grown)
    return left, top, right, bottom


class DistortedWorld:
    """Implements a `ProceduralSource` of distorted pictures that must be repaired to be read.

    The question is drawn before the problems and does not depend on them. The distortions come
    from `telling_distortions`: the answer is illegible in each distorted sample as it is shown, and
    legible after the reference program.

    Args:
        pictures: The pictures of training.
        held_out: The pictures of held-out samples, which `pictures` never draws.
        plan: The relative frequency of each problem; crops are drawn only if `pictures` has them.

    Raises:
        ConfigurationError: If the plan is empty.
    """

    ground_truth = CodingTruth

    def __init__(self, pictures: Pictures, held_out: Pictures, plan: Plan = PLANS["train"]) -> None:
        self.pictures = pictures
        self.held_out = held_out
        self.plan = plan if pictures.crops else without_crops(plan)
        self._drawn = [problems for problems, count in self.plan.items() for _ in range(count)]
        if not self._drawn:
            raise ConfigurationError(_NOTHING)

    @property
    def world_version(self) -> int:
        """Return the version of the pictures, see `visenv.data.source.world_version`."""
        return self.pictures.version

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a sample, which depends only on the state of the generator.

        Recent samples are cached, so that the members of a group share one.
        """
        return self._recent(rng, self.pictures)

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a sample with a picture that `sample` never draws."""
        return self._recent(rng, self.held_out)

    def _recent(self, rng: np.random.Generator, pictures: Pictures) -> Sample:
        maker = (pictures, *self.plan.items())
        return RECENT.sample(maker, rng, lambda rng: self._make(rng, pictures))

    def made(
        self, problems: Problems, rng: np.random.Generator, pictures: Pictures | None = None
    ) -> tuple[Sample, Sample]:
        """Return a sample without problems, and the same sample with these problems.

        Args:
            problems: The labels of the problems.
            rng: Draws the sample.
            pictures: The pictures; those of training by default.

        Raises:
            DataError: If no picture was found for which the repair matters.
        """
        pictures = self.pictures if pictures is None else pictures
        text = pictures.write(rng)
        for attempt in range(_ATTEMPTS):
            if attempt and attempt % _DRAWN_ANEW == 0:
                text = pictures.rewrite(rng, text)  # the question stays: it names no label
            clean = pictures.draw(rng, text, problems == CROP)
            made = telling_distortions(rng, pictures, clean, problems)
            if made is not None:
                return clean, _tested(with_problems(clean, problems, made), clean, pictures)
        raise DataError(
            f"No picture of {type(pictures).__name__} was found that {named(problems)} makes "
            "unreadable and its repair readable; name other problems."
        )

    def _make(self, rng: np.random.Generator, pictures: Pictures) -> Sample:
        problems = self._drawn[int(rng.integers(len(self._drawn)))]
        return self.made(problems, rng, pictures)[1]


class DistortedRows:
    """Distorts the rows of a data set; the result depends only on the rows, the plan and the seed.

    The problem of a row depends on the seed and the row's index, its parameters on the seed and
    the row's id. The schedule of the plan is repeated. A row without ``target_box`` gets another
    problem than a crop, if the plan has others.

    Args:
        source: The rows.
        plan: How often each problem occurs.
        seed: The seed of problems and parameters.

    Raises:
        ConfigurationError: If the plan is empty, or the rows are not about images.

    Attributes:
        problems: Rows that cannot be used, see `RowSource`.
    """

    ground_truth = CodingTruth

    def __init__(
        self,
        source: IndexedSource,
        plan: Plan = PLANS["train"],
        seed: int = 0,
    ) -> None:
        check_declared_truth(source, _DISTORTED, type(self).__name__)
        self.source = source
        self.seed = seed
        self._schedule = schedule(plan, seed)
        self._otherwise = schedule(without_crops(plan), seed)
        if not self._schedule:
            raise ConfigurationError(_NOTHING)

    @property
    def problems(self) -> Sequence[Any]:
        """Return the problems of the source."""
        listed: Sequence[Any] = getattr(self.source, "problems", ())
        return listed

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Sample:
        """Return the sample at `index`, 0 to ``len(self) - 1``.

        Raises:
            DataError: If the row cannot be read, or does not have one image.
        """
        sample = self.source[index]
        rng = np.random.default_rng(seed_of(self.seed, sample.id))
        problems = self._schedule[index % len(self._schedule)]
        target = sample.truth_as(QuestionTruth).target_box
        if problems == CROP and self._otherwise and target is None:
            problems = self._otherwise[index % len(self._otherwise)]
        return distorted(sample, problems, rng)
