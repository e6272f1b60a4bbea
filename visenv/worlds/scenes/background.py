"""Paints backgrounds: landscapes, textures and photographs, and the camera's grain."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from visenv.errors import ConfigurationError
from visenv.types import Image, Pixels

Levels = NDArray[np.float32]

_OCTAVES = ((3, 55), (6, 35), (12, 22), (24, 16), (48, 12), (96, 9))
"""Cells along the long side, and amplitude in levels."""

_CHROMA = 0.25
"""Saturation of light and noise, much lower than that of any sign."""

_GRAIN_TILE, _GRAIN_SPARE = 1024, 256

MATERIALS = ("landscape", "textures", "photographs")

_PHOTOGRAPHS = {
    "skimage": ("data", ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg")),
    "sklearn": ("datasets/images", ("china.jpg", "flower.jpg")),
    "matplotlib": ("mpl-data/sample_data", ("grace_hopper.jpg",)),
}
"""Folder and files of each package. All packages are needed, so that a seed has one scene."""

_DISTRIBUTIONS = "scikit-image scikit-learn matplotlib"

_LEAST_CROP = 220
"""Smallest side of the part of a photograph that becomes a surface, pixels."""


def paint_background(rng: np.random.Generator, width: int, height: int, clutter: float) -> Pixels:
    """Return a background, uint8 ``[height, width, 3]``.

    The background is painted at half size or less, and enlarged, so that it looks out of focus.

    Args:
        rng: Source of all randomness.
        width: Pixels.
        height: Pixels.
        clutter: 0 (a cloudy field with a few shapes) to 1 (a crowded scene).
    """
    from visenv.opencv import cv2

    scale = min(0.5, 768 / max(width, height))
    size = max(2, round(width * scale)), max(2, round(height * scale))
    # A row is repeated, because NumPy repeats a single pixel 20 times as slowly.
    row = np.tile(muted(rng.uniform(85, 160, 3), _CHROMA).astype(np.uint8), (size[0], 1))
    painting = np.tile(row, (size[1], 1, 1))
    for depth in np.linspace(0.1, 1, round(5 * clutter)):
        _ridge(rng, painting, float(depth))
    for _ in range(int(rng.integers(3, 8))):
        _shape(rng, painting)
    for _ in range(round(10 * clutter)):
        _bush(rng, painting)
    blurred = cv2.GaussianBlur(_textured(rng, painting, 0.45 + 0.55 * clutter), (5, 5), 1.1)
    resized = cv2.resize(blurred, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


def add_grain(rng: np.random.Generator, pixels: Pixels, amplitude: int) -> None:
    """Add sensor noise in place, uniform from ``-amplitude`` to ``amplitude`` levels.

    Each tile gets a random crop of one fixed noise field. A pixel is never clipped if its level is
    at least `amplitude` away from 0 and 255.
    """
    from visenv.opencv import cv2

    lighter, darker = _grain(amplitude)
    for top in range(0, pixels.shape[0], _GRAIN_TILE):
        for left in range(0, pixels.shape[1], _GRAIN_TILE):
            tile = pixels[top : top + _GRAIN_TILE, left : left + _GRAIN_TILE]
            down, across = (int(offset) for offset in rng.integers(0, _GRAIN_SPARE, 2))
            cut = slice(down, down + tile.shape[0]), slice(across, across + tile.shape[1])
            cv2.add(tile, lighter[cut], dst=tile)
            cv2.subtract(tile, darker[cut], dst=tile)


@lru_cache(maxsize=4)
def _grain(amplitude: int) -> tuple[Pixels, Pixels]:
    """Return levels to add and levels to subtract; one of them is 0 in each pixel."""
    side = _GRAIN_TILE + _GRAIN_SPARE
    levels = np.random.default_rng(0).integers(-amplitude, amplitude + 1, (side, side, 3))
    return levels.clip(min=0).astype(np.uint8), (-levels).clip(min=0).astype(np.uint8)


def _textured(rng: np.random.Generator, painting: Pixels, strength: float) -> Pixels:
    """Return the painting under slanting light, with fractal noise of little color.

    Each octave is added to the enlarged sum of the coarser ones, so that only the last sum has full
    size.
    """
    from visenv.opencv import cv2

    height, width = painting.shape[:2]
    long_side = max(width, height)
    total: Levels = _light(rng)
    for cells, amplitude in _OCTAVES:
        across, down = (max(2, round(cells * side / long_side)) for side in (width, height))
        octave = rng.uniform(-amplitude, amplitude, (down, across, 3)).astype(np.float32)
        coarser = cv2.resize(total, (across, down), interpolation=cv2.INTER_LINEAR)
        total = np.asarray(coarser + 1.3 * strength * muted(octave, _CHROMA), np.float32)
    levels = np.clip(total + 128, 0, 255).astype(np.uint8)
    texture = cv2.resize(levels, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.addWeighted(painting, 1, texture, 1, -128), np.uint8)


def _light(rng: np.random.Generator) -> Levels:
    """Return a gradient in a random direction, ``[3, 3, 3]``."""
    angle, strength = rng.uniform(0, 2 * np.pi), rng.uniform(10, 45)
    place = np.linspace(-strength, strength, 3, dtype=np.float32)
    slope = np.cos(angle) * place[None, :] + np.sin(angle) * place[:, None]
    return np.asarray(slope[:, :, None].repeat(3, axis=2), np.float32)


def _ridge(rng: np.random.Generator, painting: Pixels, depth: float) -> None:
    """Paint ground below a wavy skyline: lower and less hazy if it is near (`depth` to 1)."""
    from visenv.opencv import cv2

    height, width = painting.shape[:2]
    knots = rng.uniform(-0.08, 0.08, (1, int(rng.integers(4, 14))))
    waves = cv2.resize(knots, (width, 1), interpolation=cv2.INTER_CUBIC)[0]
    skyline = height * (0.2 + 0.65 * depth + waves)
    outline = np.stack([np.arange(width), skyline], axis=1)
    corners = [(width, height), (0, height)]
    polygon = np.round(np.concatenate([outline, corners])).astype(np.int32)
    haze, earth = painting[0, 0].astype(np.float32), rng.uniform((55, 65, 40), (110, 110, 80))
    color = haze + (earth - haze) * (0.3 + 0.6 * depth)
    cv2.fillPoly(painting, [polygon], tuple(int(level) for level in color), cv2.LINE_AA)


def _bush(rng: np.random.Generator, painting: Pixels) -> None:
    """Paint a cluster of leaves, lighter towards its top."""
    from visenv.opencv import cv2

    height, width = painting.shape[:2]
    spread = max(height, width) * rng.uniform(0.02, 0.06)
    middle = rng.uniform((0, 0.35 * height), (width, height))
    green = rng.uniform((50, 75, 30), (110, 120, 70))
    offsets = rng.normal(0, 1, (70, 2))
    offsets = offsets[np.argsort(-offsets[:, 1])]
    shades = 0.9 - 0.25 * offsets[:, 1] + rng.uniform(-0.15, 0.15, len(offsets))
    leaves = np.clip(green * shades[:, None], 10, 235).astype(int).tolist()
    places = (middle + spread * offsets).astype(int).tolist()
    axes = (rng.uniform(0.12, 0.36, offsets.shape) * spread + 1).astype(int).tolist()
    turns = rng.uniform(0, 180, len(offsets)).tolist()
    for place, axis, turn, leaf in zip(places, axes, turns, leaves, strict=True):
        cv2.ellipse(painting, place, axis, turn, 0, 360, leaf, -1)


def _shape(rng: np.random.Generator, painting: Pixels) -> None:
    """Paint one ellipse or rotated rectangle in a muted color, unlike any sign."""
    from visenv.opencv import cv2

    side = max(painting.shape[:2])
    color = tuple(int(level) for level in muted(rng.uniform(20, 236, 3), 0.4))
    center = (int(rng.integers(0, painting.shape[1])), int(rng.integers(0, painting.shape[0])))
    axes = tuple(int(axis) for axis in rng.integers(side // 40, side // 9 + 1, 2))
    turn = float(rng.uniform(0, 180))
    if rng.random() < 0.5:
        cv2.ellipse(painting, center, axes, turn, 0, 360, color, -1, cv2.LINE_AA)
    else:
        corners = cv2.boxPoints((center, (2 * axes[0], 2 * axes[1]), turn))
        cv2.fillConvexPoly(painting, corners.astype(np.int32), color, cv2.LINE_AA)


def muted(color: NDArray[np.generic], chroma: float) -> Levels:
    """Return the color with its distance from gray scaled by `chroma`."""
    levels = np.asarray(color, np.float32)
    gray = levels.mean(axis=-1, keepdims=True)
    return np.asarray(gray + chroma * (levels - gray), np.float32)


def surface(rng: np.random.Generator, material: str, side: int, clutter: float) -> Pixels:
    """Return a surface, uint8 ``[side, side, 3]``.

    Args:
        rng: Draws the surface.
        material: ``"landscape"`` (hazy and out of focus), ``"textures"`` (a landscape that is rough
            as bark, sand or cloth), or ``"photographs"``.
        side: Pixels.
        clutter: Clutter of a landscape, 0 to 1.

    Raises:
        ConfigurationError: If a package with photographs is not installed.
    """
    if material == "photographs":
        return _photograph(rng, side)
    if material == "landscape":
        return paint_background(rng, side, side, clutter)
    return _rough_landscape(rng, side, clutter)


def _rough_landscape(rng: np.random.Generator, side: int, clutter: float) -> Pixels:
    """Return a landscape with a fine texture, painted at half size and enlarged."""
    from visenv.opencv import cv2

    half = side // 2
    painting = paint_background(rng, half, half, clutter)
    grains = muted(rng.standard_normal((half // 2, half // 2, 3), np.float32), 0.3)
    along, across = rng.uniform(0.5, 5.0), rng.uniform(0.5, 1.2)
    field = cv2.GaussianBlur(grains, (0, 0), sigmaX=along, sigmaY=across)
    if rng.random() < 0.5:
        field = np.ascontiguousarray(field.swapaxes(0, 1))
    levels = np.clip(field / field.std() * rng.uniform(6, 16) + 128, 0, 255).astype(np.uint8)
    texture = cv2.resize(levels, (half, half), interpolation=cv2.INTER_LINEAR)
    rough = cv2.addWeighted(painting, 1, texture, 1, -128)
    return np.asarray(cv2.resize(rough, (side, side), interpolation=cv2.INTER_LINEAR), np.uint8)


def _photograph(rng: np.random.Generator, side: int) -> Pixels:
    """Return a random part of a random photograph, half of them mirrored."""
    from visenv.opencv import cv2

    photos = _photographs()
    photo = photos[int(rng.integers(len(photos)))]
    height, width = photo.shape[:2]
    part = int(rng.integers(_LEAST_CROP, min(height, width) + 1))
    top, left = int(rng.integers(height - part + 1)), int(rng.integers(width - part + 1))
    cut = photo[top : top + part, left : left + part]
    turned = np.ascontiguousarray(cut[:, ::-1]) if rng.random() < 0.5 else cut
    return np.asarray(cv2.resize(turned, (side, side), interpolation=cv2.INTER_CUBIC), np.uint8)


@lru_cache(maxsize=1)
def _photographs() -> tuple[Pixels, ...]:
    photos: list[Pixels] = []
    for package, (folder, names) in _PHOTOGRAPHS.items():
        found = find_spec(package)
        if found is None or found.origin is None:
            raise ConfigurationError(
                "Surfaces from photographs need the photographs of three packages: pip install "
                f'{_DISTRIBUTIONS}. Or use painted surfaces: material="textures" of MagsZoom, or '
                'world="default" of ArftCoding.'
            )
        where = Path(found.origin).parent / folder
        photos += [Image.from_file(where / name).pixels for name in names]
    return tuple(photos)
