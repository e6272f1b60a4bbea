"""Presets of ZoomVQA: what is shown, what is cropped, how it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.images import QWEN_PIXELS

from .prompts import PromptStyle
from .tools import CropSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoomVQAPreset:
    """One preset.

    Attributes:
        view_side: Longest side of the image shown, pixels; None shows it at native size.
        crop_source: Whether the zoom cuts from the shown image or from the native one.
        crop_side: Side of the square crop, in pixels of the shown image.
        image_pixels: Pixel budget of one image shown.
        enlarge: Whether the crop is scaled up to the size of the input image; False is the ablation
            of §3.3.
        prompt: How the task is put.
        world: Preset of the procedural world that fits, or None where none does: what its scenes
            ask for can be read neither in the image as shown nor, since averaging has removed
            it, in a crop of that image.
    """

    view_side: int | None
    crop_source: CropSource
    crop_side: int
    image_pixels: int
    prompt: PromptStyle
    world: str | None
    enlarge: bool = True


PRESETS = {
    # Paper §2.1: train on images of at most 1024 px and crop from those; evaluate at native size.
    "train": ZoomVQAPreset(
        view_side=1024,
        crop_source="view",
        crop_side=400,
        image_pixels=QWEN_PIXELS,
        prompt="full",
        world=None,
    ),
    "eval": ZoomVQAPreset(
        view_side=None,
        crop_source="native",
        crop_side=400,
        image_pixels=QWEN_PIXELS,
        prompt="full",
        world=None,
    ),
    # Procedural scenes of any size: seen at 1024 px, cropped from the native pixels.
    "scenes": ZoomVQAPreset(
        view_side=1024,
        crop_source="native",
        crop_side=400,
        image_pixels=QWEN_PIXELS,
        prompt="full",
        world="default",
    ),
    # The main job on a CPU: a view so small that zooming is the only way to the answer.
    "tiny": ZoomVQAPreset(
        view_side=96,
        crop_source="native",
        crop_side=32,
        image_pixels=96 * 96,
        prompt="brief",
        world="tiny",
    ),
}
