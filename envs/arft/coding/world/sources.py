"""Distorted samples: any questions about images, and something wrong with each image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from visenv.curation.step import seed_of
from visenv.data.source import IndexedSource, Source, draw
from visenv.errors import ConfigurationError, DataError
from visenv.types import Image, Sample

from . import kinds
from .plans import CROP, PLANS, Plan, Problems, named, schedule, split_of, without_crops

_MARGIN = 0.5
"""What a crop leaves on each side of what is asked about, of its width or height."""
_NOTHING = "A plan needs at least one problem; where nobody knows where to look, one but crops."


def distorted(sample: Sample, problems: Problems, rng: np.random.Generator) -> Sample:
    """The sample with these problems.

    ``meta`` of what is returned holds ``problems`` (in the order in which they came about),
    ``distortions`` (``{"name": …, <parameters>}`` each, see `kinds`), ``split`` (``"simple"`` or
    ``"hard"``), ``steps`` (the kinds of turns it takes), ``labels`` to report by and, of a crop,
    ``box``: where to look, ``[left, top, right, bottom]`` in thousandths of the image's sides.

    Args:
        sample: With one image; for a crop, with ``meta["target_box"]`` in pixels.
        problems: What is to be wrong with it.
        rng: Draws the parameters.

    Raises:
        DataError: If it has not one image, or nobody knows where to crop.
    """
    if len(sample.images) != 1:
        raise DataError(f"Sample {sample.id!r} has {len(sample.images)} images; one is distorted.")
    image = sample.images[0]
    made = [kinds.draw(name, rng) for name in problems if name in kinds.KINDS]
    meta = described(problems, made)
    if "options" in sample.meta:
        meta["options"] = sample.meta["options"]
    if problems == CROP:
        meta["box"] = _region(sample)
    pixels = image.pixels
    for distortion in made:
        pixels = kinds.apply(pixels, distortion)
    return replace(
        sample,
        id=f"{sample.id}/{named(problems)}",
        images=(Image.from_pixels(pixels) if made else image,),
        kind=named(problems),
        meta=meta,
    )


def described(problems: Problems, distortions: Iterable[kinds.Distortion]) -> dict[str, Any]:
    """What `Sample.meta` says of a sample with these problems."""
    split = split_of(problems)
    return {
        "problems": list(problems),
        "distortions": [dict(each) for each in distortions],
        "split": split,
        "steps": ["problem", *(() if problems == ("none",) else ("code",)), "answer"],
        "labels": {"split": split, "problem": named(problems)},
    }


def _region(sample: Sample) -> list[int]:
    """The target's box with a margin, in thousandths."""
    if "target_box" not in sample.meta:
        raise DataError(f"Sample {sample.id!r} does not say where to crop: it has no target_box.")
    box, size = sample.meta["target_box"], sample.images[0].size
    grown: list[float] = []
    for edge, side in enumerate((-1, -1, 1, 1)):
        axis = edge % 2
        margin = _MARGIN * (box[axis + 2] - box[axis])
        grown.append(1000 * (box[edge] + side * margin) / size[axis])
    return [min(1000, max(0, round(edge))) for edge in grown]


class DistortedWorld:
    """A `ProceduralSource` of distorted samples.

    Args:
        source: Samples for every problem but crops.
        crops: Samples with ``meta["target_box"]``, what they ask about being too small to be read
            as shown; None: no crops are drawn.
        plan: How often each problem is drawn, in proportion.

    Raises:
        ConfigurationError: If nothing would be drawn.
    """

    def __init__(
        self, source: Source, crops: Source | None = None, plan: Plan = PLANS["train"]
    ) -> None:
        self.source = source
        self.crops = crops
        plan = plan if crops is not None else without_crops(plan)
        self._drawn = [problems for problems, count in plan.items() for _ in range(count)]
        if not self._drawn:
            raise ConfigurationError(_NOTHING)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone."""
        problems = self._drawn[int(rng.integers(len(self._drawn)))]
        return distorted(self.clean(problems, rng), problems, rng)

    def clean(self, problems: Problems, rng: np.random.Generator) -> Sample:
        """A sample that fits these problems, before it has them.

        Raises:
            DataError: If there is no source for it.
        """
        source = self.crops if problems == CROP else self.source
        if source is None:
            raise DataError("There are no samples to crop from.")
        return draw(source, rng, {})


class DistortedRows:
    """The rows of a data set, each with something wrong; always the same for one seed.

    Which problem a row has depends on the seed and its place, its parameters on the seed and its
    id. The problems are shared out by the plan, over and over; a row without ``target_box`` gets
    another one than a crop, where the plan has others.

    Args:
        source: The rows.
        plan: How often each problem occurs.
        seed: Of problems and parameters.

    Raises:
        ConfigurationError: If the plan is empty.

    Attributes:
        problems: Rows that cannot be used, see `RowSource`.
    """

    def __init__(
        self,
        source: IndexedSource,
        plan: Plan = PLANS["train"],
        seed: int = 0,
    ) -> None:
        self.source = source
        self.seed = seed
        self._schedule = schedule(plan, seed)
        self._otherwise = schedule(without_crops(plan), seed)
        if not self._schedule:
            raise ConfigurationError(_NOTHING)

    @property
    def problems(self) -> Sequence[Any]:
        """Those of the source."""
        listed: Sequence[Any] = getattr(self.source, "problems", ())
        return listed

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Sample:
        """The sample at `index`, 0 to ``len(self) - 1``.

        Raises:
            DataError: If the row cannot be read, or has not one image.
        """
        sample = self.source[index]
        rng = np.random.default_rng(seed_of(self.seed, sample.id))
        problems = self._schedule[index % len(self._schedule)]
        if problems == CROP and self._otherwise and "target_box" not in sample.meta:
            problems = self._otherwise[index % len(self._otherwise)]
        return distorted(sample, problems, rng)
