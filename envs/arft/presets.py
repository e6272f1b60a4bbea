"""Defines presets and settings of the ARFT environments, such as image sizes and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

from typing_extensions import TypedDict

from visenv.errors import ConfigurationError
from visenv.images import QWEN_PIXELS
from visenv.presets import check_choice, choose_preset, pop_env_options

from .prompts import PromptStyle
from .rewards.qa import Compat

Reward = Literal["f1", "em", "outcome"]

TRAIN_PIXELS = 401_408
"""512 visual tokens of 28x28 pixels: ``max_pixels`` of the public training scripts."""

PASSAGES = 4
"""Number of results of a search in the public evaluation of Visual-ARFT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArftPreset:
    """Holds the fields of a preset.

    Attributes:
        image_pixels: Maximum number of pixels of a shown image; programs work on all pixels.
        turns: Number of turns in an episode.
        tool_characters: Maximum length of the shown output and traceback of a program, or of the
            results of a search.
        world: Name of the procedural world, such as ``"photographs"`` for ArftCoding.
    """

    image_pixels: int = TRAIN_PIXELS
    turns: int = 5
    tool_characters: int = 2000
    prompt: PromptStyle = "full"
    world: str = "default"


PRESETS = {
    # The public code: 401,408 pixels in training, no limit of its own in evaluation, 5 turns.
    "train": ArftPreset(),
    "eval": ArftPreset(image_pixels=QWEN_PIXELS),
    # Three steps to do, and one spare turn.
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
    """Holds the fields of a preset of searching.

    Attributes:
        passages: Maximum number of passages that a search shows.
    """

    tool_characters: int = 4000
    passages: int = PASSAGES


SEARCH_PRESETS = {
    # The public code: 4 results of a search, 5 turns.
    "train": ArftSearchPreset(),
    "eval": ArftSearchPreset(image_pixels=QWEN_PIXELS),
    # Two searches, an answer, and one spare turn.
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
    """Defines settings of both environments, in addition to the fields of `ArftPreset`.

    Args:
        preset: ``"train"`` (the paper's 401,408 pixels), ``"eval"`` (12.8 megapixels, for data
            sets) or ``"tiny"`` (for a very small model on a CPU). Any field of `ArftPreset` may be
            given to change it, for example ``turns=6``.
        reward: ``"f1"`` (the paper's), ``"em"`` (its ablation, table 3) or ``"outcome"``.
        compat: ``"arft"`` reproduces the public code: its rewards, its prompt that is rebuilt
            every turn, and its harness that crops for the model (docs/arft.md lists everything).
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """

    preset: str
    reward: Reward
    compat: Compat
    render_mode: str | None
    on_abort: Literal["truncate", "raise"]
    image_pixels: int
    turns: int
    tool_characters: int
    prompt: PromptStyle
    world: str


class ArftSearchSettings(ArftSettings, total=False):
    """Defines the settings of searching, in addition to those of `ArftSettings`.

    Args:
        passages: Maximum number of passages that a search shows.
    """

    passages: int


PresetT = TypeVar("PresetT", bound=ArftPreset)


class ArftConfig(NamedTuple, Generic[PresetT]):
    """Holds checked settings.

    Attributes:
        preset: The preset, with the given fields changed.
        reward: The name of the reward.
        compat: ``"arft"`` or None.
        env: The given arguments of `VisEnv`.
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
    """Look up the preset, and check all settings.

    Args:
        env_id: The id of the environment, for errors.
        maker: The function that creates the environment; errors list its arguments.
        presets: The presets of the environment.
        settings: The given settings.

    Raises:
        UnknownNameError: If a setting or its value is unknown; suggests the nearest.
        ConfigurationError: If a number is out of range.
    """
    changes = dict(settings)
    name, reward = changes.pop("preset", "train"), changes.pop("reward", "f1")
    compat = changes.pop("compat", None)
    env = pop_env_options(changes)
    check_choice("reward", reward, get_args(Reward))
    check_choice("compat mode", compat or "arft", ("arft",))
    preset = choose_preset(env_id, maker, presets, name, changes)
    if preset.turns < 2:
        raise ConfigurationError(
            f"turns must be at least 2, one turn to act and one to answer, got {preset.turns}."
        )
    return ArftConfig(preset, reward, compat, env)
