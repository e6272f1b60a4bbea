"""Draws contact sheets of 24 first images of environments, for the pages of docs/.

    python benchmarks/contact_sheets.py docs/images [id ...]

Each tile is the first image of an episode, or the middle frame of a video, at the size at which the
policy sees it. Of a larger image, the tile shows the part around the object of the question. If the
sample has no such object, an image of at most twice the side of a tile is reduced, and of a larger
one, the upper left corner is shown. The episodes are those of the first 24 held-out seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image

import visenv  # noqa: F401 - registers the environments
from visenv.evaluation.held_out import places
from visenv.images import fit
from visenv.types import Image, Pixels, Sample, StepResult, Video

FAMILIES = (
    *("ZoomVQA", "ArmZoom", "ArmDoc", "ArftCoding", "ArftSearch"),
    *("MagsZoom", "ArgosImage", "ArgosVideo"),
)
OPTIONS: dict[str, dict[str, Any]] = {
    "ArftCoding": {"problems": ["none"]},
    "MagsZoom": {"magnifier": "none"},
}
"""Options of environments; distorted pictures of ArftCoding would show nothing."""
COUNT, COLUMNS = 24, 6
SIDE = 256
"""Side of a tile, pixels."""
WHOLE = {"ArftCoding": 640}
"""Sides of tiles that show a whole picture."""

GAP = 4


def first_picture(step: StepResult) -> Image:
    """Return the first image of the messages, or the middle frame of their first video.

    Raises:
        ValueError: If the messages have neither.
    """
    for message in step.messages:
        for part in message.parts:
            if isinstance(part, Image):
                return part
            if isinstance(part, Video):
                return part.frames[len(part.frames) // 2]
    raise ValueError("The environment shows no image.")


def tile(shown: Image, sample: Sample, side: int = SIDE) -> Pixels:
    """Return a shown image or its part that fits into a tile, uint8 ``[height, width, 3]``.

    Args:
        shown: The image as the policy sees it.
        sample: The sample.
        side: The side of a tile, pixels.
    """
    width, height = shown.size
    box = getattr(sample.ground_truth, "target_box", None)
    if box is None or not sample.images:
        if max(shown.size) > 2 * side:
            return shown.pixels[:side, :side]
        return fit(shown, width * height, side).pixels
    scale = width / sample.images[0].size[0]
    middle = scale * (box[0] + box[2]) / 2, scale * (box[1] + box[3]) / 2
    left = min(max(0, round(middle[0]) - side // 2), max(0, width - side))
    top = min(max(0, round(middle[1]) - side // 2), max(0, height - side))
    return shown.pixels[top : top + side, left : left + side]


def sheet(name: str) -> PIL.Image.Image:
    """Return the contact sheet of an id without ``visenv/`` and ``-v0``."""
    env: Any = gym.make(f"visenv/{name}-v0", **OPTIONS.get(name, {}))
    side = WHOLE.get(name, SIDE)
    cell = side + GAP
    whole = np.full((COUNT // COLUMNS * cell, COLUMNS * cell, 3), 255, np.uint8)
    for number, spec in enumerate(places(env, COUNT)):
        _, info = env.reset(seed=spec.seed)
        part = tile(first_picture(info["step"]), env.unwrapped.sample, side)
        height, width = part.shape[:2]
        row, column = divmod(number, COLUMNS)
        top, left = row * cell + (cell - height) // 2, column * cell + (cell - width) // 2
        whole[top : top + height, left : left + width] = part
    env.close()
    return PIL.Image.fromarray(whole)


def main(folder: str, names: list[str]) -> None:
    for name in names or FAMILIES:
        sheet(name).save(Path(folder) / f"sheet-{name}.webp", quality=50, method=6)
        print(f"{name}: {COUNT} pictures", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images", sys.argv[2:])
