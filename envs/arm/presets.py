"""Presets of the ARM environments: what is shown, how long an episode is, how it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.images import ARM_PIXELS, QWEN_PIXELS

from .prompts import PromptStyle


@dataclass(frozen=True, slots=True)
class Stage:
    """One preset.

    Attributes:
        view_side: Longest side of an image of the sample as shown, pixels; None: only the budget.
        image_pixels: Pixel budget of one image shown, results of tools included.
        overview_pixels: Pixel budget of a document's overview.
        thumbnail: Longest side of a page in it, pixels.
        page_side: Longest side of a page that a document tool shows, pixels.
        pages_found: Most pages that a query shows.
        turns: Turns in an episode, the last one without tools.
        tool_characters: Characters shown of one text a tool returns.
        prompt: How the task is put.
        world: Preset of the procedural world.
    """

    view_side: int | None
    image_pixels: int
    overview_pixels: int
    thumbnail: int
    page_side: int
    pages_found: int
    turns: int
    tool_characters: int
    prompt: PromptStyle
    world: str


STAGES = {
    # Published training: 5 turns, 4096 characters, 4096 visual tokens of 28x28 pixels.
    "train": Stage(None, ARM_PIXELS, ARM_PIXELS, 448, 1120, 5, 5, 4096, "full", "default"),
    # Published evaluation: 8 rounds of tools, images as Qwen2.5-VL takes them by default.
    "eval": Stage(None, QWEN_PIXELS, ARM_PIXELS, 448, 1120, 5, 9, 4096, "full", "default"),
    # A view so small that a model of a million parameters reads it on a CPU. In thumbnails of a
    # third of a page's 96 px the stripes of its documents cannot be told apart.
    "tiny": Stage(96, 96 * 96, 144 * 144, 32, 96, 1, 4, 512, "brief", "tiny"),
}
