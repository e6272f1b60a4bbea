"""Measures scenes per second on one core, against simple baselines of the same size.

The baselines are short scripts. They draw a field of noise (Pillow's ``effect_noise``, or
scikit-image's ``random_noise`` over a gradient) with the same number of shapes, plates and words.
The detail of their scenes can be seen in the view.

    python benchmarks/scenes.py
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import statistics
import time
from collections.abc import Callable

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage.util import random_noise

from visenv.worlds.scenes import ScenesWorld

ROUNDS, PER_ROUND = 7, 6
FONT = ImageFont.load_default(24)


def pillow(rng: np.random.Generator, side: int, shapes: int, plates: int) -> np.ndarray:
    """Return an image with Gaussian noise in three channels, shapes, and plates with a word."""
    channels = [Image.effect_noise((side, side), 60) for _ in range(3)]
    return decorated(Image.merge("RGB", channels), rng, shapes, plates)


def scikit_image(rng: np.random.Generator, side: int, shapes: int, plates: int) -> np.ndarray:
    """Return a gradient with scikit-image's Gaussian noise, shapes, and plates with a word."""
    gradient = np.linspace(0.2, 0.8, side)[:, None, None].repeat(side, 1).repeat(3, 2)
    noisy = random_noise(gradient, "gaussian", rng=rng, var=0.01)  # type: ignore[no-untyped-call]
    return decorated(Image.fromarray((noisy * 255).astype(np.uint8)), rng, shapes, plates)


def decorated(image: Image.Image, rng: np.random.Generator, shapes: int, plates: int) -> np.ndarray:
    draw = ImageDraw.Draw(image)
    side = image.size[0]
    for _ in range(shapes):
        x, y = (int(v) for v in rng.integers(0, side, 2))
        size = int(rng.integers(side // 80, side // 30))
        red, green, blue = (int(level) for level in rng.integers(0, 256, 3))
        draw.ellipse((x, y, x + size, y + size), fill=(red, green, blue))
    for _ in range(plates):
        x, y = (int(v) for v in rng.integers(0, side - 160, 2))
        draw.ellipse((x, y, x + 160, y + 160), fill=(110, 110, 110), outline="red", width=8)
        draw.text((x + 80, y + 80), "EXIT", "black", FONT, "mm")
    return np.asarray(image)


def main() -> None:
    cv2.setNumThreads(1)
    world = ScenesWorld("small")
    preset = world.preset
    shapes = round(10 * preset.at(preset.clutter)) * 70  # as many leaves as a scene has
    plates = round(preset.at(preset.signs))
    makers: dict[str, Callable[[np.random.Generator], object]] = {
        "visenv": world.sample,
        "Pillow": lambda rng: pillow(rng, preset.width, shapes, plates),
        "scikit-image": lambda rng: scikit_image(rng, preset.width, shapes, plates),
    }
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    for round_ in range(ROUNDS):  # interleaved, so that other load affects all
        for name, make in makers.items():
            start = time.process_time()
            for index in range(PER_ROUND):
                make(np.random.default_rng([round_, index]))
            seconds[name].append((time.process_time() - start) / PER_ROUND)
    rates = {name: 1 / statistics.median(times[1:]) for name, times in seconds.items()}
    print(f"scenes of {preset.width}x{preset.height} px per CPU second, one core (target: 50)")
    for name, rate in rates.items():
        print(f"  {name:13s} {rate:7.1f}   {rate / rates['visenv']:.2f} of visenv")
    for name in ("tiny", "default", "4k", "8k"):
        other = ScenesWorld(name)
        other.sample(np.random.default_rng(0))
        start = time.process_time()
        for index in range(3):
            other.sample(np.random.default_rng(index))
        milliseconds = (time.process_time() - start) / 3 * 1000
        size = f"{other.preset.width}x{other.preset.height}"
        print(f"  preset {name:8s} {size:10s} {milliseconds:7.1f} ms")


if __name__ == "__main__":
    main()
