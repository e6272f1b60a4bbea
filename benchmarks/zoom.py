"""Compares the whole zoom step with only crop and resize, and measures the memory of an 8K image.

The step is everything that `gym.make("visenv/ZoomVQA-v0")` does for a tool call: reading the turn,
checking the arguments, events, reward wrapper, observation. The baseline is
``numpy.asarray(image.crop(box).resize(size, LANCZOS))`` of a decoded Pillow image, with the same
kernel and the same boxes; all boxes are different.

    python benchmarks/zoom.py
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
from PIL import Image as PilImage

import visenv  # noqa: F401  (registers the ids)
from benchmarks.memory import memory_mib
from visenv.envs.zoom_vqa.tools import crop_window
from visenv.images import Window, scale_window
from visenv.types import Image, Sample

EIGHT_K = (7680, 4320)
TARGET = 1.15


class OneImage:
    """Represents a source of one sample."""

    def __init__(self, image: Image) -> None:
        self._sample = Sample("one", "What is written there?", (image,), ("nothing",))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Sample:
        return self._sample


def zoom_env(image: Image, view_side: int, crop_side: int, max_pixels: int) -> gym.Env:
    env = gym.make(
        "visenv/ZoomVQA-v0",
        data=OneImage(image),
        preset="eval",
        view_side=view_side,
        crop_side=crop_side,
        image_pixels=max_pixels,
    )
    env.reset(seed=0)
    return env


def photograph(width: int, height: int) -> np.ndarray:
    """Return an image with detail at all scales."""
    coarse = np.random.default_rng(0).integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    enlarged = PilImage.fromarray(coarse).resize((width, height), PilImage.Resampling.BICUBIC)
    return np.array(enlarged)


def timed(act: Callable[[], object]) -> float:
    """Return the seconds of processor time, which other load of the machine affects little."""
    start = time.process_time()
    act()
    return time.process_time() - start


def compare(size: tuple[int, int], view_side: int, crop_side: int, output: int, zooms: int) -> None:
    """Alternate between baseline and whole step, so that other load affects both."""
    pixels = photograph(*size)
    bare_image = PilImage.fromarray(pixels)
    env = zoom_env(Image.from_pixels(pixels), view_side, crop_side, output * output)
    view = view_side, round(view_side * size[1] / size[0])
    points = _different_points(view, crop_side, zooms)
    bare_times: list[float] = []
    whole_times: list[float] = []
    for number, (x, y) in enumerate(points):
        box = scale_window(crop_window(view, (x, y), crop_side), view, size)
        action = f"<think> there </think><tool>\nname: zoom\nkeypoint: [{x}, {y}]\n</tool>"
        pair = (
            (bare_times, lambda box=box: _bare(bare_image, box, output)),
            (whole_times, lambda action=action: env.step(action)),
        )
        for times, act in pair if number % 2 else reversed(pair):
            env.reset(seed=0)  # before both, so that memory and caches are equal
            times.append(timed(act))
    bare, whole = (statistics.median(times) * 1000 for times in (bare_times, whole_times))
    ratios = sorted(w / b for w, b in zip(whole_times, bare_times, strict=True))
    print(
        f"  {size[0]}x{size[1]} seen at {view_side}, {output}x{output} out:  bare {bare:7.2f} ms"
        f"   whole step {whole:7.2f} ms   ratio {whole / bare:.3f}"
        f"   (median of pairs {statistics.median(ratios):.3f}; target {TARGET})"
    )


def _bare(image: PilImage.Image, box: Window, output: int) -> np.ndarray:
    resized = image.crop(box).resize((output, output), PilImage.Resampling.LANCZOS)
    return np.asarray(resized)


def _different_points(view: tuple[int, int], crop_side: int, count: int) -> list[tuple[int, int]]:
    """Return points that are far enough from the borders to have different boxes."""
    half = crop_side // 2
    width, height = (side - crop_side for side in view)
    cells = np.random.default_rng(0).choice(width * height, count, replace=False)
    return [(half + int(cell) % width, half + int(cell) // width) for cell in cells]


# -------------------------------------------------------------------------------------- memory


def measure_memory(path: str) -> None:
    """Measure opening the 8K file and zooms in 20 episodes, in a separate process."""
    warm = zoom_env(Image.from_pixels(photograph(256, 256)), 128, 50, 128 * 128)
    warm.step("<tool>\nname: zoom\nkeypoint: [60, 60]\n</tool>")
    before = memory_mib()
    env = zoom_env(Image.from_file(path), 1024, 400, 1024 * 1024)
    opened, decoding = memory_mib(), memory_mib("VmHWM")
    zooming = 0.0
    for step in range(20):
        env.step(f"<tool>\nname: zoom\nkeypoint: [{250 + 20 * step}, {200 + 5 * step}]\n</tool>")
        zooming = max(zooming, memory_mib())
        env.reset(seed=0)
    copy = EIGHT_K[0] * EIGHT_K[1] * 3 / 2**20
    print(f"  one decoded copy      {copy:6.1f} MiB (7680 x 4320 x 3)")
    print(f"  held after reset      {opened - before:6.1f} MiB")
    print(f"  most held after zooms {zooming - before:6.1f} MiB (with view, crop and observation)")
    print(f"  peak while Pillow decodes {decoding - before:6.1f} MiB")


def main() -> None:
    print("time of one zoom")
    compare((448, 448), 448, 175, 448, 400)
    compare(EIGHT_K, 1024, 400, 1024, 40)
    compare(EIGHT_K, 448, 175, 448, 40)
    print("memory, 8K image from a file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "8k.png"
        PilImage.fromarray(photograph(*EIGHT_K)).save(path, compress_level=1)
        subprocess.run([sys.executable, __file__, str(path)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure_memory(sys.argv[1])
    else:
        main()
