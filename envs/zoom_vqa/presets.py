"""Defines presets of ZoomVQA: image sizes, the source of crops, and the prompt."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.images import QWEN_PIXELS

from .prompts import PromptStyle
from .tools import CropSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoomVQAPreset:
    """Holds the fields of a preset.

    Attributes:
        view_side: Longest side of the shown image in pixels; None shows it at native size.
        crop_source: Whether the zoom cuts from the shown image or from the native one.
        crop_side: Side of the square crop, in pixels of the shown image.
        image_pixels: Maximum number of pixels of a shown image.
        enlarge: Whether the crop is scaled up to the size of the input image; False is the ablation
            of §3.3.
        world: Preset of the procedural world; None if no world is suitable, because the details of
            scenes would be unreadable both in the shown image and in its crops.
    """

    view_side: int | None
    crop_source: CropSource
    crop_side: int = 400
    image_pixels: int = QWEN_PIXELS
    prompt: PromptStyle = "full"
    world: str | None = None
    enlarge: bool = True


PRESETS = {
    # Paper §2.1: train on images of at most 1024 px and crop from those; evaluate at native size.
    "train": ZoomVQAPreset(view_side=1024, crop_source="view"),
    "eval": ZoomVQAPreset(view_side=None, crop_source="native"),
    # Procedural scenes of any size: seen at 1024 px, cropped from the native pixels.
    "scenes": ZoomVQAPreset(view_side=1024, crop_source="native", world="default"),
    # The main job on a CPU: the view is so small that the answer requires zooming.
    "tiny": ZoomVQAPreset(
        view_side=96,
        crop_source="native",
        crop_side=32,
        image_pixels=96 * 96,
        prompt="brief",
        world="tiny",
    ),
}
