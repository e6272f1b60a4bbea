"""Reads the rows of the curation steps, and the samples that they refer to.

A row that `draft` wrote contains ``id`` and its place (`visenv.curation.places`), ``question``,
``options``, ``images`` (as the environment shows them), ``times`` (seconds of each frame, empty for
images), ``response`` (the right answer), ``kind``, ``sample`` and ``draft``. Later steps add
``entities``, ``points``, ``trace`` and ``extraction``. All coordinates are pixels of the images as
shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import gymnasium as gym

from visenv.curation.lines import Row
from visenv.curation.places import place_of
from visenv.data.rows import text_of
from visenv.errors import ConfigurationError, DataError
from visenv.types import Image

from ..env.base import ArgosEnv
from ..prompts import anchor

MakeEnv = Callable[[], gym.Env[Any, str]]


class DrawnPoint(NamedTuple):
    """Describes a point on an entity.

    Attributes:
        image: The number of the image or frame, from 1.
        x: Whole pixels from the left edge of the image as shown.
        y: Whole pixels from the top edge of the image as shown.
        label: The entity.
    """

    image: int
    x: int
    y: int
    label: str


class SampleEnv:
    """Holds an environment that is used to read its samples.

    Args:
        make_env: Creates ``visenv/ArgosImage-v0`` or ``visenv/ArgosVideo-v0``.

    Attributes:
        env: The environment with its wrappers.
        base: The environment without wrappers.

    Raises:
        ConfigurationError: If this is another environment, or it has relative coordinates.
    """

    def __init__(self, make_env: MakeEnv) -> None:
        self.env = make_env()
        base: object = self.env.unwrapped
        if not isinstance(base, ArgosEnv):
            self.env.close()
            raise ConfigurationError(
                f"Expected ArgosImage-v0 or ArgosVideo-v0, got {type(base).__name__}."
            )
        if base.preset.coordinates != "pixels":
            self.env.close()
            raise ConfigurationError(
                "Traces have coordinates in pixels, which the models read from the overlays; leave "
                'out coordinates="relative1000" and preset="qwen3".'
            )
        self.base = base

    def at(self, row: Row) -> ArgosEnv:
        """Return the environment, reset to the sample of a row.

        The result is valid until the next call, so a coroutine must not await while it uses it.

        Raises:
            DataError: If the row contains no place, or the sample cannot be read.
        """
        place = place_of(row)
        options = None if place.index is None else {"index": place.index}
        self.env.reset(seed=place.seed, options=options)
        return self.base

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def images_of(row: Row) -> list[Image]:
    """Return the images of a row.

    Raises:
        DataError: If the row has none.
    """
    paths = row.get("images")
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise DataError(f"no images: {paths!r:.80}")
    return [Image.from_file(Path(path)) for path in paths]


def times_of_row(row: Row) -> tuple[float, ...]:
    """Return the time of each frame in seconds; empty for images.

    Raises:
        DataError: If they are not increasing numbers.
    """
    times = row.get("times")
    if not isinstance(times, list) or not all(map(is_number, times)):
        raise DataError(f"no list of times: {times!r:.80}")
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise DataError(f"times must increase, got {times!r:.80}")
    return tuple(map(float, times))


def texts_of(row: Row, key: str) -> list[str]:
    """Return the texts under `key`.

    Raises:
        DataError: If there is no list of texts.
    """
    texts = row.get(key)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"no list of texts under {key!r}: {texts!r:.80}")
    return texts


def points_of(row: Row) -> list[DrawnPoint]:
    """Return the points of a row.

    Raises:
        DataError: If ``points`` is not a list of points.
    """
    points = row.get("points")
    if not isinstance(points, list):
        raise DataError(f"no list of points: {points!r:.80}")
    return [_point(each) for each in points]


def question_of(row: Row) -> str:
    """Return the question followed by its options, one per line.

    Raises:
        DataError: If the row has no question.
    """
    options = texts_of(row, "options")
    lines = [f"({letter}) {text}" for letter, text in zip(ascii_uppercase, options, strict=False)]
    return "\n".join([text_of(row, "question"), *lines])


def timeline(times: Sequence[float]) -> str:
    """Return the announcement of the frames, for example ``[F1 @ t=0.00s] [F2 @ t=0.50s]``."""
    return " ".join(anchor(number, time) for number, time in enumerate(times))


def is_number(value: object) -> bool:
    """Return whether a JSON value is a finite number that a float can represent."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < 1e12 and math.isfinite(value)


def _point(found: object) -> DrawnPoint:
    try:
        point = DrawnPoint(**found)  # type: ignore[arg-type]  # a TypeError for anything else
    except TypeError as error:
        raise DataError(f"no point: {found!r:.80}") from error
    numbers = point[:3]
    if not all(is_number(each) and each == int(each) for each in numbers) or point.image < 1:
        raise DataError(f"a point must have whole numbers, got {found!r:.80}")
    if not isinstance(point.label, str):
        raise DataError(f"a point must have a label, got {found!r:.80}")
    return point
