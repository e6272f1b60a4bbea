"""Measures the magnifier: fidelity of its kinds on scenes and photographs, speed of its networks.

    python benchmarks/magnifier.py
    python benchmarks/magnifier.py --weights <folder of SMFANet's published weights>

Fidelity is the PSNR, in decibels, of an image that was averaged down by 4 and enlarged by 4 again,
compared with the original. The scenes are held-out scenes of the family's world, whose true pixels
are known; the compared area is each sign with a margin. The photographs are those of scikit-image
and scikit-learn; `small` was not trained on them. Each number is a mean.

Legibility is the share of signs that can be read in the enlarged crop: among the panels with each
possible value of the detail, drawn with the same random numbers, the panel with the true value has
the lowest mean squared error. `view` enlarges the image as the model sees it, by Lanczos.

Speed is that of a 64 px crop on one thread in float32, the median of several runs, compared with
the lightweight Swin2SR of transformers, with random weights, in the same process.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import skimage.data
import sklearn.datasets
import torch
import tyro

from visenv.envs.mags.ground_truth import MagsTruth
from visenv.envs.mags.magnifier.backend import PACKAGED
from visenv.envs.mags.magnifier.magnify import open_magnifier
from visenv.envs.mags.magnifier.small import load_small
from visenv.envs.mags.magnifier.smfanet import VARIANTS, SMFANet
from visenv.envs.mags.magnifier.weights import load_smfanet
from visenv.envs.mags.world import SCENES, MagsWorld
from visenv.envs.mags.world.questions import make_scene
from visenv.envs.mags.world.render import paint, to_native
from visenv.images import Window
from visenv.types import Image, Pixels

SCALE = 4
SHARP = [name for name in SCENES if SCENES[name].degradation is None]
HELD_OUT = range(900_000, 900_012)
Enlarge = Callable[[Pixels], Pixels]


@dataclass(frozen=True)
class Options:
    """Measure the magnifier.

    Attributes:
        weights: Folder of the published weights.
    """

    weights: Path | None = None


def main(options: Options) -> None:
    torch.set_num_threads(1)
    kinds: dict[str, Enlarge] = {
        "lanczos": lambda crop: _resized(crop, PIL.Image.Resampling.LANCZOS),
        "resize": lambda crop: _resized(crop, PIL.Image.Resampling.BICUBIC),
        "small": by_network(load_small(PACKAGED["small"])),
    }
    if options.weights is not None:
        for file in sorted(options.weights.glob(f"*_x{SCALE}SR.pth")):
            kinds[file.stem] = by_network(load_smfanet(file))
    print("PSNR in dB, and the gain over lanczos")
    for name in SHARP:
        report(f"scenes: {name}", list(scenes(name)), kinds)
    for name, photo in photographs():
        report(f"photograph: {name}", [photo], kinds)
    print("\nlegibility: share of signs whose value is the nearest one, and chance")
    for name in SHARP:
        report_legibility(name, kinds)
    print("\nseconds for a 64 px crop, one thread")
    speed()
    asyncio.run(cached())


def by_network(network: torch.nn.Module) -> Enlarge:
    def enlarge(crop: Pixels) -> Pixels:
        image = torch.from_numpy(crop).permute(2, 0, 1)[None].float() / 255
        with torch.inference_mode():
            levels = (network(image)[0].clamp(0, 1) * 255).round().to(torch.uint8)
        return np.asarray(levels.permute(1, 2, 0).contiguous().numpy(), np.uint8)

    return enlarge


def _resized(crop: Pixels, kernel: PIL.Image.Resampling) -> Pixels:
    height, width = crop.shape[:2]
    return np.asarray(PIL.Image.fromarray(crop).resize((SCALE * width, SCALE * height), kernel))


def scenes(name: str) -> Iterator[tuple[Pixels, Pixels]]:
    """Yield native crops of signs, and the true pixels at four times their resolution."""
    for seed in HELD_OUT:
        sample, rendered = MagsWorld(name).pair(np.random.default_rng(seed))
        native = sample.images[0].pixels
        for sign in sample.truth_as(MagsTruth).signs:
            left, top, right, bottom = (int(edge) for edge in sign.box)
            margin = (right - left) // 4
            left, top = max(0, left - margin), max(0, top - margin)
            right, bottom = right + margin, bottom + margin
            low = native[top:bottom, left:right]
            across = slice(SCALE * left, SCALE * (left + low.shape[1]))
            yield low.copy(), rendered[SCALE * top : SCALE * (top + low.shape[0]), across]


def report_legibility(name: str, kinds: dict[str, Enlarge]) -> None:
    unit = int(SCENES[name].unit)
    readable: dict[str, list[bool]] = {"view": [], **{kind: [] for kind in kinds}}
    chances: list[float] = []
    for native, value, panels in panels_of(name):
        side = native.shape[0] // unit
        shrunk = cv2.resize(native, (side, side), interpolation=cv2.INTER_AREA)
        target = next(iter(panels.values())).shape[1::-1]
        enlarged = {kind: enlarge(native) for kind, enlarge in kinds.items()}
        lanczos = PIL.Image.Resampling.LANCZOS
        enlarged["view"] = np.asarray(PIL.Image.fromarray(shrunk).resize(target, lanczos))
        for kind, pixels in enlarged.items():
            readable[kind].append(max(panels, key=lambda each: psnr(pixels, panels[each])) == value)
        chances.append(1 / len(panels))
    shown = "   ".join(f"{kind} {statistics.mean(each):.2f}" for kind, each in readable.items())
    print(f"  scenes: {name:<16} {shown}   chance {statistics.mean(chances):.2f}")


def panels_of(name: str) -> Iterator[tuple[Pixels, str, dict[str, Pixels]]]:
    """Yield the native panel of a sign, its value, and the rendered panel with each value."""
    scenes = SCENES[name]
    for seed in HELD_OUT:
        rng = np.random.default_rng(seed)
        scene = make_scene(rng, scenes)
        state = rng.bit_generator.state
        panels: dict[str, Pixels] = {}
        left, top, right, bottom = scene.signs[0].panel.native(scenes.rendered_unit)
        for value in scenes.values(scene.detail):
            rng.bit_generator.state = state
            rendered = paint(rng, scenes, scene._replace(values=[value, *scene.values[1:]]))
            panels[value] = rendered[top:bottom, left:right].copy()
            if value == scene.values[0]:
                low = slice(top // SCALE, bottom // SCALE), slice(left // SCALE, right // SCALE)
                native = to_native(rendered)[low]
        yield native, scene.values[0], panels


def photographs() -> Iterator[tuple[str, tuple[Pixels, Pixels]]]:
    """Yield photographs averaged down, and the originals."""
    named = {name: getattr(skimage.data, name)() for name in ("astronaut", "coffee", "chelsea")}
    images = sklearn.datasets.load_sample_images().images
    named |= dict(zip(("china", "flower"), images, strict=True))
    for name, pixels in named.items():
        height, width = (side // SCALE * SCALE for side in pixels.shape[:2])
        whole = np.ascontiguousarray(pixels[:height, :width, :3])
        size = (width // SCALE, height // SCALE)
        yield name, (np.asarray(cv2.resize(whole, size, interpolation=cv2.INTER_AREA)), whole)


def report(title: str, pairs: list[tuple[Pixels, Pixels]], kinds: dict[str, Enlarge]) -> None:
    found = {
        name: statistics.mean(psnr(enlarge(low), high) for low, high in pairs)
        for name, enlarge in kinds.items()
    }
    shown = "   ".join(
        f"{name} {value:.2f} ({value - found['lanczos']:+.2f})" for name, value in found.items()
    )
    print(f"  {title:<24} {shown}")


def psnr(given: Pixels, true: Pixels) -> float:
    error = np.mean((given.astype(np.float64) - true) ** 2)
    return float(10 * np.log10(255**2 / error))


def speed() -> None:
    from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution

    lightweight = Swin2SRConfig(
        upscale=SCALE,
        embed_dim=60,
        depths=[6, 6, 6, 6],
        num_heads=[6, 6, 6, 6],
        upsampler="pixelshuffledirect",
    )
    image = torch.rand(1, 3, 64, 64)
    networks: dict[str, torch.nn.Module] = {
        "Swin2SR lightweight": Swin2SRForImageSuperResolution(lightweight).eval(),
        **{name: SMFANet(*variant, SCALE).eval() for name, variant in VARIANTS.items()},
        "small": load_small(PACKAGED["small"]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in networks}
    with torch.inference_mode():
        for _ in range(6):
            for name, network in networks.items():
                start = time.process_time()
                network(image)
                seconds[name].append(time.process_time() - start)
    peer = statistics.median(seconds["Swin2SR lightweight"][1:])
    for name, each in seconds.items():
        own = statistics.median(each[1:])
        print(f"  {name:<20} {own:.3f} s   {peer / own:5.1f} times as fast as Swin2SR")


async def cached() -> None:
    """Measure a cached crop; the target is at most 0.2 ms."""
    magnifier = open_magnifier("small")
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    image, window = Image.from_pixels(pixels), Window(0, 0, 64, 64)
    await magnifier.enlarge(image, window, 1 << 20)
    start = time.perf_counter()
    for _ in range(500):
        await magnifier.enlarge(image, window, 1 << 20)
    print(f"  a cached crop of `small`: {(time.perf_counter() - start) * 2:.3f} ms (target 0.2)")


if __name__ == "__main__":
    main(tyro.cli(Options))
