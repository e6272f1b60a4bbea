"""Presets and settings of the ARFT environments: what is shown, how long an episode is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

from visenv.errors import ConfigurationError
from visenv.images import QWEN_PIXELS
from visenv.presets import check_choice, choose_preset, pop_env_options

from .prompts import PromptStyle
from .rewards.qa import Compat

REWARDS = ("f1", "em", "outcome")

TRAIN_PIXELS = 401_408
"""512 visual tokens of 28x28 pixels: ``max_pixels`` of the public training scripts."""

PASSAGES = 4
"""Results of a search in the public evaluation of Visual-ARFT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArftPreset:
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


PRESETS = {
    # The public code: 401,408 pixels in training, no limit of its own in evaluation, 5 turns.
    "train": ArftPreset(
        image_pixels=TRAIN_PIXELS,
        turns=5,
        tool_characters=2000,
        prompt="full",
        world="default",
    ),
    "eval": ArftPreset(
        image_pixels=QWEN_PIXELS,
        turns=5,
        tool_characters=2000,
        prompt="full",
        world="default",
    ),
    # Three steps to take, and one turn to spare.
    "tiny": ArftPreset(
        image_pixels=96 * 96,
        turns=4,
        tool_characters=400,
        prompt="brief",
        world="tiny",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArftSearchPreset(ArftPreset):
    """One preset of searching.

    Attributes:
        passages: Most passages that a search shows.
    """

    passages: int


SEARCH_PRESETS = {
    # The public code: 4 results of a search, 5 turns.
    "train": ArftSearchPreset(
        image_pixels=TRAIN_PIXELS,
        turns=5,
        tool_characters=4000,
        prompt="full",
        world="default",
        passages=PASSAGES,
    ),
    "eval": ArftSearchPreset(
        image_pixels=QWEN_PIXELS,
        turns=5,
        tool_characters=4000,
        prompt="full",
        world="default",
        passages=PASSAGES,
    ),
    # Two searches and an answer, and one turn to spare.
    "tiny": ArftSearchPreset(
        image_pixels=96 * 96,
        turns=4,
        tool_characters=400,
        prompt="brief",
        world="tiny",
        passages=2,
    ),
}


class ArftSettings(TypedDict, total=False):
    """Settings of both environments, beside the fields of `ArftPreset`.

    Args:
        preset: ``"train"`` (the paper's 401,408 pixels), ``"eval"`` (12.8 megapixels, with data
            sets) or ``"tiny"`` (for a very small model on a CPU). Any field of `ArftPreset` may be
            given to change it, for example ``turns=6``.
        reward: ``"f1"`` (the paper's), ``"em"`` (its ablation, table 3) or ``"outcome"``.
        compat: ``"arft"`` does as the public code: its rewards, its prompt that is made again every
            turn, its harness that crops for the model (docs/arft.md lists all of it).
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """

    preset: str
    reward: Literal["f1", "em", "outcome"]
    compat: Compat
    render_mode: str | None
    on_abort: Literal["truncate", "raise"]
    image_pixels: int
    turns: int
    tool_characters: int
    prompt: PromptStyle
    world: str


class ArftSearchSettings(ArftSettings, total=False):
    """`ArftSettings` of searching.

    Args:
        passages: Most passages that a search shows.
    """

    passages: int


PresetT = TypeVar("PresetT", bound=ArftPreset)


class ArftConfig(NamedTuple, Generic[PresetT]):
    """Settings, checked.

    Attributes:
        preset: The preset, with the fields that were given.
        reward: The reward's name.
        compat: ``"arft"`` or None.
        env: The arguments of `VisEnv` that were given.
    """

    preset: PresetT
    reward: str
    compat: Compat
    env: dict[str, Any]


def choose(
    env_id: str,
    maker: Callable[..., Any],
    presets: Mapping[str, PresetT],
    settings: Mapping[str, Any],
) -> ArftConfig[PresetT]:
    """Look the preset up, and check all settings.

    Args:
        env_id: The environment, for errors.
        maker: The function that makes it; errors name its arguments.
        presets: Its presets.
        settings: What was given.

    Raises:
        UnknownNameError: If a setting or its value is unknown; names the nearest.
        ConfigurationError: If a number cannot be.
    """
    changes = dict(settings)
    name, reward = changes.pop("preset", "train"), changes.pop("reward", "f1")
    compat = changes.pop("compat", None)
    env = pop_env_options(changes)
    check_choice("reward", reward, REWARDS)
    check_choice("compat mode", compat or "arft", ("arft",))
    preset = choose_preset(env_id, maker, presets, name, changes)
    if preset.turns < 2:
        raise ConfigurationError("An episode needs 2 turns or more, one to act and one to answer.")
    return ArftConfig(preset, reward, compat, env)
