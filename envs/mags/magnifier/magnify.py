"""Enlarges crops: not at all, by interpolation, or with a network that the process shares."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from cachetools import LRUCache

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.images import Window, cut, shrink, size_within
from visenv.options import read_options
from visenv.scorers import Scorer
from visenv.tools.crop_box import SMALL
from visenv.types import Image, Pixels

from .backend import PACKAGED, Magnify, check_weights

MAGNIFIERS = (*PACKAGED, "lanczos", "resize", "none", "smfanet:<file>")

_RESIZED: LRUCache[Any, Pixels] = LRUCache(1 << 26, getsizeof=lambda pixels: pixels.nbytes)
_LOCK = Lock()

_LARGE = 1 << 17
"""Number of pixels above which a network enlarges a crop only if it is shown twice as large."""


class Magnifier(Protocol):
    """Enlarges parts of images."""

    async def enlarge(self, image: Image, window: Window, max_pixels: int) -> Image:
        """Return the window of the image, enlarged.

        Args:
            image: The native image.
            window: The window in pixels of the image.
            max_pixels: Maximum number of pixels of the result.

        Raises:
            ServiceError: If a network failed.
        """
        ...


class BareCrop:
    """Shows crops at their native size, without a magnifier."""

    async def enlarge(self, image: Image, window: Window, max_pixels: int) -> Image:
        """Return the crop, shrunk if it exceeds `max_pixels`."""
        return Image.from_pixels(_within(_pixels(image, window), max_pixels))


class InterpolationMagnifier:
    """Enlarges crops by interpolation.

    Args:
        kernel: ``"lanczos"`` or ``"bicubic"``.
    """

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel

    async def enlarge(self, image: Image, window: Window, max_pixels: int) -> Image:
        """Return the crop at its target size."""
        size = target_size(window.size, max_pixels)
        if _shrinks(size, window.size):
            return Image.from_pixels(_within(_pixels(image, window), max_pixels))
        return Image.from_pixels(np.asarray(cut(image, window).resize(size, _kernel(self.kernel))))


class NetworkMagnifier:
    """Enlarges crops with a super-resolution network, which all environments of a process share.

    Args:
        scorer: A scorer whose backend computes `Magnify`.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    async def enlarge(self, image: Image, window: Window, max_pixels: int) -> Image:
        """Return the enlarged crop.

        The output of the network is resized to the target by averaging or Lanczos interpolation. A
        crop of more than `_LARGE` pixels that is shown at less than twice its size is enlarged by
        Lanczos interpolation instead: most of the network's output would be averaged away, and its
        memory and time grow with the crop. A crop that must be shrunk needs no network either.
        """
        size = target_size(window.size, max_pixels)
        if _is_reduced(size, window.size):
            return await InterpolationMagnifier("lanczos").enlarge(image, window, max_pixels)
        crop = Image.from_pixels(_pixels(image, window))
        verdict = await self.scorer.score(Magnify(crop))
        return Image.from_pixels(_resized_once(verdict.value, size))


def open_magnifier(name: str, deterministic: bool = True) -> Magnifier:
    """Return the magnifier of that name.

    Args:
        name: ``"small"``, ``"small-deblur"``, ``"lanczos"``, ``"resize"`` (bicubic), ``"none"``,
            or ``"smfanet:<file>"``. After the name of a network or the file, ``?device=cuda`` may
            follow.
        deterministic: Whether a network must return the same bytes for a crop in any batch and
            with any number of threads; it then computes each crop alone.

    Raises:
        UnknownNameError: If there is no such magnifier.
        ConfigurationError: If the file cannot be used, PyTorch is missing for a network, or the
            options are not ``device=<device>``.
    """
    path, _, query = str(name).partition("?")
    kind, _, file = path.partition(":")
    plain: dict[str, Callable[[], Magnifier]] = {
        "none": BareCrop,
        "lanczos": lambda: InterpolationMagnifier("lanczos"),
        "resize": lambda: InterpolationMagnifier("bicubic"),
    }
    if name in plain:
        return plain[name]()
    if path in PACKAGED:
        weights = path
    elif kind == "smfanet":
        weights = str(Path(file).expanduser())
    else:
        raise UnknownNameError("magnifier", str(name), MAGNIFIERS)
    options = _network_options(query)
    check_weights(weights)
    return NetworkMagnifier(
        Scorer("magnifier", weights=weights, deterministic=deterministic, **options)
    )


def target_size(size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
    """Return the size at which a crop is shown.

    The size is four times that of the crop if the short side is below 224 px, otherwise twice that
    of the crop, reduced to at most `max_pixels`.

    Args:
        size: ``(width, height)`` of the crop.
        max_pixels: Maximum number of pixels.
    """
    scale = 4 if min(size) < SMALL else 2
    return size_within((scale * size[0], scale * size[1]), max_pixels)


def _network_options(query: str) -> dict[str, Any]:
    """Return the options of a network; ``device`` is the only one."""
    options = read_options(query, "a magnifier")
    for name, value in options.items():
        if name != "device":
            raise UnknownNameError("option of a magnifier", name, ["device"])
        if not value:
            raise ConfigurationError("The option device of a magnifier must not be empty.")
    return options


def _is_reduced(size: tuple[int, int], crop: tuple[int, int]) -> bool:
    """Return whether a crop is shown so small that the network is not worth its cost."""
    reduced = size[0] < 2 * crop[0] or size[1] < 2 * crop[1]
    return _shrinks(size, crop) or (reduced and crop[0] * crop[1] > _LARGE)


def _shrinks(size: tuple[int, int], crop: tuple[int, int]) -> bool:
    return size[0] <= crop[0] or size[1] <= crop[1]


def _pixels(image: Image, window: Window) -> Pixels:
    return np.array(image.pixels[window.top : window.bottom, window.left : window.right])


def _within(pixels: Pixels, max_pixels: int) -> Pixels:
    height, width = pixels.shape[:2]
    size = size_within((width, height), max_pixels)
    return pixels if size == (width, height) else shrink(pixels, size)


def _resized_once(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return the output of a network at another size; recent results are stored.

    The members of a group enlarge the same crops. The scorer stores the output of the network, but
    networks for x2 and x3 would have it interpolated to x4 for each member.
    """
    height, width = pixels.shape[:2]
    if size == (width, height):
        return pixels
    key = (hashlib.sha256(pixels.tobytes()).digest(), (width, height), size)
    with _LOCK:
        found = _RESIZED.get(key)
    if found is None:
        found = _resized(pixels, size)
        with _LOCK:
            _RESIZED[key] = found
    return found


def _resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return the pixels at another size: averaged if it is smaller, otherwise interpolated."""
    import PIL.Image

    height, width = pixels.shape[:2]
    if size == (width, height):
        return pixels
    if size[0] <= width and size[1] <= height:
        return shrink(pixels, size)
    return np.asarray(PIL.Image.fromarray(pixels).resize(size, _kernel("lanczos")))


def _kernel(name: str) -> Any:
    import PIL.Image

    kernels = PIL.Image.Resampling
    return kernels.LANCZOS if name == "lanczos" else kernels.BICUBIC
