"""Places the signs of a scene; the signs of one question are far apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from visenv.errors import ConfigurationError
from visenv.worlds.scenes.signs import FRAMES, Box, Sign

from .presets import SceneDifficulty

SPREAD = 0.4
"""Minimum share of the image that the box around the panels of all signs of a question covers.

The panels contain the details that decide the answer. A valid zoom box covers less of the image, so
that no valid box contains all details of a question. The box around the panels is measured without
half a view pixel on each side, because a crop is rounded outwards to whole native pixels.
"""

_CANDIDATES = 64
_MOST_ATTEMPTS = 10_000
_GAP = 2


def place_signs(
    rng: np.random.Generator, scenes: SceneDifficulty, count: int, together: int
) -> list[Sign]:
    """Return signs of different colors that do not touch.

    Args:
        rng: The random generator.
        scenes: The difficulty.
        count: Number of signs.
        together: The first `together` signs belong to one question: a box around their panels
            covers at least `SPREAD` of the image, unless there is only one.

    Raises:
        ConfigurationError: If no such places are found, for example because `grid` is too large.
    """
    for _ in range(_MOST_ATTEMPTS):
        signs = _try_to_place(rng, scenes, count)
        if signs is None:
            continue
        if together < 2 or _share([sign.panel for sign in signs[:together]], scenes) >= SPREAD:
            return signs
    raise ConfigurationError(
        f"There are no places for {count} signs on a grid of {scenes.grid} px: choose a smaller "
        "grid or fewer signs."
    )


def _try_to_place(
    rng: np.random.Generator, scenes: SceneDifficulty, count: int
) -> list[Sign] | None:
    """Return signs at random places, the second far from the first; None if one has no space."""
    frames = [list(FRAMES)[place] for place in rng.permutation(len(FRAMES))[:count]]
    signs: list[Sign] = []
    for frame in frames:
        shape = scenes.shapes[int(rng.integers(len(scenes.shapes)))]
        detail = _detail(rng, scenes)
        side = scenes.sign_side(shape, detail)
        corners = _corners(rng, scenes, side)
        free = corners[_are_free(corners, side, [sign.box for sign in signs])]
        if not len(free):
            return None
        chosen = free[0] if len(signs) != 1 else _farthest(free[:8], signs[0].box)
        signs.append(_sign(frame, shape, int(chosen[0]), int(chosen[1]), detail, scenes))
    return signs


def _detail(rng: np.random.Generator, scenes: SceneDifficulty) -> int:
    """Return the side of a panel, view px."""
    if not scenes.least_detail:
        return scenes.detail
    return int(rng.integers(scenes.least_detail, scenes.detail + 1))


def _corners(rng: np.random.Generator, scenes: SceneDifficulty, side: int) -> NDArray[np.int64]:
    """Return random left upper corners of a sign, ``[candidates, 2]``, in whole view pixels."""
    cells = -(-side // scenes.grid)
    across = scenes.view_side // scenes.grid - cells + 1
    margin = (cells * scenes.grid - side) // 2
    return rng.integers(0, across, (_CANDIDATES, 2)) * scenes.grid + margin


def _are_free(corners: NDArray[np.int64], side: int, taken: list[Box]) -> NDArray[np.bool_]:
    free = np.ones(len(corners), bool)
    left, top = corners[:, 0] - _GAP, corners[:, 1] - _GAP
    right, bottom = corners[:, 0] + side + _GAP, corners[:, 1] + side + _GAP
    for box in taken:
        apart = (left >= box.right) | (right <= box.left) | (top >= box.bottom)
        free &= apart | (bottom <= box.top)
    return free


def _farthest(corners: NDArray[np.int64], box: Box) -> NDArray[np.int64]:
    """Return the corner that spans the largest box with `box`."""
    spans = np.abs(corners[:, 0] - box.left) * np.abs(corners[:, 1] - box.top)
    return np.asarray(corners[int(spans.argmax())])


def _sign(
    frame: str, shape: str, left: int, top: int, detail: int, scenes: SceneDifficulty
) -> Sign:
    side = scenes.sign_side(shape, detail)
    margin = (side - detail) // 2
    inner = left + margin, top + margin
    panel = Box(*inner, inner[0] + detail, inner[1] + detail)
    return Sign(frame, shape, Box(left, top, left + side, top + side), panel)


def _share(boxes: list[Box], scenes: SceneDifficulty) -> float:
    """Return the share of the image that the box around all boxes covers, see `SPREAD`."""
    width = max(box.right for box in boxes) - min(box.left for box in boxes)
    height = max(box.bottom for box in boxes) - min(box.top for box in boxes)
    return (width - 1) * (height - 1) / scenes.view_side**2
