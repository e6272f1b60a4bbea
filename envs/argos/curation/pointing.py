"""Creates points for the entities of an image (appendix C.1), and draws them on it (figure 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.episodes import save_images
from visenv.errors import DataError
from visenv.scorers import Scorer
from visenv.types import Image, Sample
from visenv.verifier.models import ModelPointing
from visenv.verifier.oracle import OraclePointingModel
from visenv.verifier.teachers import FrameReference, PointingModel

from ..prompts import POINTING, Coordinates, anchor
from .entities import entities_of
from .rows import DrawnPoint, MakeEnv, SampleEnv, images_of, points_of, times_of_row

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_INK, _PAPER, _SPOT = (255, 255, 255), (0, 0, 0), (255, 45, 111)

Box = tuple[int, int, int, int]


@dataclass(eq=False)
class PointToEntities(CurationStep):
    """Adds ``points`` to each row: for each entity in each image or frame, in whole pixels.

    Raises:
        ConfigurationError: If there is no such scorer, or this is not an Argos environment.
    """

    name: ClassVar[str] = "argos-point"

    make_env: MakeEnv
    pointing_model: str
    """The pointing model: oracle, for procedural samples, or a scorer, for example
    openai:allenai/Molmo-7B-D-0924?base_url=http://localhost:8000/v1. In the paper it is Molmo-7B.
    """
    label: str = ""
    pointing_coordinates: Coordinates = "pixels"
    """Unit of the points that the model writes as JSON: pixels (Qwen2.5-VL), or from 0 to 1000
    (Qwen3-VL). Molmo's points are always from 0 to 100.
    """

    def __post_init__(self) -> None:
        self._model, self._name = _pointing_model(self.pointing_model, self.pointing_coordinates)
        self._samples = SampleEnv(self.make_env)

    @override
    def settings(self) -> dict[str, Any]:
        return {"env": self.label, "pointing_model": self._name}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        labels = entities_of(row)
        env = self._samples.at(row)
        sample = env.sample
        sizes = [env.store.images[f"image_{n + 1}"].size for n in range(len(sample.images))]
        if sample.id != row.get("sample"):
            raise DataError(
                f"the place contains {sample.id!r}, but the row {row.get('sample')!r:.80}"
            )
        found = await asyncio.gather(
            *(
                self._points(sample, number, label, size)
                for number, size in enumerate(sizes)
                for label in labels
            )
        )
        points = dict.fromkeys(point for each in found for point in each)
        return kept({**row, "points": [point._asdict() for point in points]})

    async def _points(
        self, sample: Sample, number: int, label: str, size: tuple[int, int]
    ) -> list[DrawnPoint]:
        """Return the points of a label in one image, in pixels of the image as shown."""
        width, height = sample.images[number].size
        return [
            DrawnPoint(number + 1, int(x * size[0] / width), int(y * size[1] / height), label)
            for x, y in await self._model.places(FrameReference(sample, number), label)
        ]

    @override
    def close(self) -> None:
        self._samples.close()


def _pointing_model(line: str, coordinates: Coordinates) -> tuple[PointingModel, str]:
    """Return the pointing model of a scorer line, and its name for the journal."""
    if line == "oracle":
        return OraclePointingModel(), line
    scorer = Scorer.parse(line)
    unit = "" if coordinates == "pixels" else f", {coordinates}"
    return ModelPointing(scorer, POINTING, coordinates=coordinates), f"{scorer.name}{unit}"


@dataclass(eq=False)
class DrawOverlay(CurationStep):
    """Draws the points of each row.

    The images of a row become the originals followed by as many overlays. The frames of a video
    are replaced by their overlays, as in the paper, because both together were too long.
    """

    name: ClassVar[str] = "argos-overlay"

    folder: Path

    @override
    async def decide(self, row: Row) -> RowOutcome:
        images, times, points = images_of(row), times_of_row(row), points_of(row)
        overlays = []
        for number, image in enumerate(images):
            spots = [(each.x, each.y) for each in points if each.image == number + 1]
            title = anchor(number, times[number]).strip("[]") if times else ""
            overlays.append(draw_points(image, spots, title))
        paths = [str(path) for path in save_images(self.folder / "images", overlays)]
        return kept({**row, "images": paths if times else [*row["images"], *paths]})


def draw_points(image: Image, points: Iterable[tuple[int, int]], title: str = "") -> Image:
    """Return a copy of an image with a dot and the text ``(x, y)`` for each point inside it.

    A text is written at the first of several positions around its point at which it is inside the
    image and covers no other text; if there is none, at the first position, moved into the image.

    Args:
        image: The image; not changed.
        points: Whole pixels; points outside the image are ignored.
        title: A text for the upper left corner.
    """
    import PIL.Image
    from PIL.ImageDraw import Draw

    width, height = image.size
    canvas = PIL.Image.fromarray(np.array(image.pixels))
    draw = Draw(canvas)
    size = max(9, min(width, height) // 32)
    radius = max(1, size // 5)
    taken: list[Box] = []
    if title:
        taken.append(_write(draw, (0, 0), title, size))
    inside = [(x, y) for x, y in dict.fromkeys(points) if 0 <= x < width and 0 <= y < height]
    for x, y in inside:
        box = (x - radius, y - radius, x + radius, y + radius)
        draw.ellipse(box, fill=_SPOT, outline=_INK)
    for x, y in inside:
        text = f"({x}, {y})"
        place = _free_place(_text_size(draw, text, size), (x, y), radius + 1, image.size, taken)
        taken.append(_write(draw, place, text, size))
    return Image.from_pixels(np.asarray(canvas))


def _free_place(
    text: tuple[int, int],
    point: tuple[int, int],
    gap: int,
    size: tuple[int, int],
    taken: Sequence[Box],
) -> tuple[int, int]:
    """Return the upper left corner at which a text of this size is written."""
    (width, height), (x, y) = text, point
    rows = (y - height - gap, y + gap, y - height // 2, y - 2 * height - gap, y + height + gap)
    places = [(column, row) for row in rows for column in (x + gap, x - width - gap)]
    moved = [
        (max(0, min(left, size[0] - width)), max(0, min(top, size[1] - height)))
        for left, top in places
    ]
    free = (
        place
        for place in moved
        if not any(
            _overlap((*place, place[0] + width, place[1] + height), other) for other in taken
        )
    )
    return next(free, moved[0])


def _write(draw: ImageDraw, place: tuple[int, int], text: str, size: int) -> Box:
    """Write a text on a dark background; return the box that it covers."""
    width, height = _text_size(draw, text, size)
    box = (*place, place[0] + width, place[1] + height)
    draw.rectangle(box, fill=_PAPER)
    draw.text((place[0] + 1, place[1] + 1), text, fill=_INK, font_size=size, anchor="lt")
    return box


def _text_size(draw: ImageDraw, text: str, size: int) -> tuple[int, int]:
    left, top, right, bottom = draw.textbbox((0, 0), text, font_size=size, anchor="lt")
    return int(right - left) + 2, int(bottom - top) + 2


def _overlap(first: Box, second: Box) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )
