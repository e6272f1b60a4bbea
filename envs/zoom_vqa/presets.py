"""Presets of ZoomVQA: what is shown, what is cropped, how it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.images import QWEN_PIXELS

from .prompts import PromptStyle
from .tools import CropSource


@dataclass(frozen=True, slots=True)
class Stage:
    """One preset.

    Attributes:
        view_side: Longest side of the image shown, pixels; None shows it at native size.
        crop_source: Whether the zoom cuts from the shown image or from the native one.
        crop_side: Side of the square crop, in pixels of the shown image.
        image_pixels: Pixel budget of one image shown.
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


STAGES = {
    # Paper §2.1: train on images of at most 1024 px and crop from those; evaluate at native size.
    "train": Stage(1024, "view", 400, QWEN_PIXELS, "full", None),
    "eval": Stage(None, "native", 400, QWEN_PIXELS, "full", None),
    # Procedural scenes of any size: seen at 1024 px, cropped from the native pixels.
    "scenes": Stage(1024, "native", 400, QWEN_PIXELS, "full", "default"),
    # The main job on a CPU: a view so small that zooming is the only way to the answer.
    "tiny": Stage(96, "native", 32, 96 * 96, "brief", "tiny"),
}
