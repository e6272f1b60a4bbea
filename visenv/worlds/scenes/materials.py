"""Makes surfaces of scenes: landscapes, textures, or photographs of installed packages."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Image, Pixels
from visenv.worlds.scenes.background import muted, paint_background

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
