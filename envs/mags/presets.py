"""Defines presets of Mags-RL: prompt, data, reward and magnifier."""

from __future__ import annotations

from dataclasses import dataclass, replace

from visenv.images import QWEN_PIXELS

from .prompts import Style


@dataclass(frozen=True, slots=True, kw_only=True)
class MagsPreset:
    """Holds the fields of a preset.

    Attributes:
        reward: The stage of the reward, ``"stage1"`` or ``"stage2"``.
        scenes: Difficulty of the procedural scenes, a key of `visenv.envs.mags.world.SCENES`.
        view_side: Longest side of the shown image in pixels; None shows a data set's images at
            native size, and procedural scenes at a size at which the signs cannot be read.
        image_pixels: Maximum number of pixels of the shown image.
        crop_pixels: Maximum number of pixels of one enlarged crop.
        magnifier: The magnifier, see `visenv.envs.mags.make`.
    """

    reward: str
    prompt: Style
    scenes: str
    view_side: int | None = None
    image_pixels: int = QWEN_PIXELS
    crop_pixels: int = 1024 * 1024
    magnifier: str = "small"


_TINY = MagsPreset(
    reward="stage1",
    prompt="brief",
    scenes="tiny",
    view_side=96,
    image_pixels=96 * 96,
    crop_pixels=96 * 96,
)
"""Stage 1 for a model of a million parameters on a CPU, with views of 96 px."""

PRESETS = {
    "stage1": MagsPreset(reward="stage1", prompt="stage1", scenes="simple"),
    "stage2": MagsPreset(reward="stage2", prompt="stage2", scenes="complex"),
    # Signs of 18 to 24 native pixels that are blurred, noisy and compressed.
    "degraded": MagsPreset(
        reward="stage2", prompt="stage2", scenes="degraded", magnifier="small-deblur"
    ),
    "tiny-stage1": _TINY,
    "tiny": replace(_TINY, reward="stage2", scenes="tiny-complex"),
    "tiny-degraded": replace(_TINY, scenes="tiny-degraded", magnifier="small-deblur"),
}
