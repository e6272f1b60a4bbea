"""Presets of the ARFT environments: what is shown, how long an episode is, how it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.images import QWEN_PIXELS

from .prompts import PromptStyle

TRAIN_PIXELS = 401_408
"""512 visual tokens of 28x28 pixels: ``max_pixels`` of the public training scripts."""

PASSAGES = 4
"""Results of a search in the public evaluation of Visual-ARFT."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One preset.

    Attributes:
        image_pixels: Pixel budget of one image shown; programs work on all its pixels.
        turns: Turns in an episode.
        tool_characters: Characters shown of what a program prints, of its traceback, or of what a
            search finds.
        prompt: How the task is put.
        world: Preset of the procedural world.
    """

    image_pixels: int
    turns: int
    tool_characters: int
    prompt: PromptStyle
    world: str


STAGES = {
    # The public code: 401,408 pixels in training, no limit of its own in evaluation, 5 turns.
    "train": Stage(TRAIN_PIXELS, 5, 2000, "full", "default"),
    "eval": Stage(QWEN_PIXELS, 5, 2000, "full", "default"),
    # Three steps to take, and one turn to spare.
    "tiny": Stage(96 * 96, 4, 400, "brief", "tiny"),
}


@dataclass(frozen=True, slots=True)
class SearchStage(Stage):
    """One preset of searching.

    Attributes:
        passages: Most passages that a search shows.
    """

    passages: int


SEARCH_STAGES = {
    # The public code: 4 results of a search, 5 turns.
    "train": SearchStage(TRAIN_PIXELS, 5, 4000, "full", "default", PASSAGES),
    "eval": SearchStage(QWEN_PIXELS, 5, 4000, "full", "default", PASSAGES),
    # Two searches and an answer, and one turn to spare.
    "tiny": SearchStage(96 * 96, 4, 400, "brief", "tiny", 2),
}
