"""Defines presets and settings of the ARM environments, such as image sizes and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict, get_args

from visenv.errors import ConfigurationError
from visenv.grammar.tool_call import Compat
from visenv.images import ARM_PIXELS, QWEN_PIXELS
from visenv.presets import check_choice, choose_preset, pop_env_options

from .evidence import CallRule
from .prompts import PromptStyle
from .rewards import REWARDS

Mode = Literal["agent", "no_tool"]

UNREADABLE = 144
"""Longest side of a page in an overview of real documents, pixels; a line of text of the usual size
is then 2 pixels high. Procedural reports are drawn as outlines, which are unreadable at any
size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPreset:
    """Holds the fields of a preset.

    Attributes:
        view_side: Longest side of a shown image of the sample in pixels; None: no limit.
        image_pixels: Maximum number of pixels of a shown image, including results of tools.
        overview_pixels: Maximum number of pixels of a document's overview.
        thumbnail: Longest side of a page in the overview, pixels; for real documents
            `UNREADABLE`, unless it is given.
        page_side: Longest side of a page that a document tool shows, pixels.
        pages_found: Maximum number of pages that a query shows.
        turns: Number of turns in an episode; the last one has no tools.
        tool_characters: Maximum length of a text from a tool.
        world: Preset of the procedural world.
    """

    view_side: int | None = None
    image_pixels: int = ARM_PIXELS
    overview_pixels: int = ARM_PIXELS
    thumbnail: int = 448
    page_side: int = 1120
    pages_found: int = 5
    turns: int = 5
    tool_characters: int = 4096
    prompt: PromptStyle = "full"
    world: str = "default"


PRESETS = {
    # Published training: 5 turns, 4096 characters, 4096 visual tokens of 28x28 pixels.
    "train": ArmPreset(),
    # Published evaluation: 8 turns with tools, images with the default limits of Qwen2.5-VL.
    "eval": ArmPreset(image_pixels=QWEN_PIXELS, turns=9),
    # Views so small that a model of a million parameters reads them on a CPU. In thumbnails of a
    # third of a page's 96 px the stripes of its documents cannot be distinguished.
    "tiny": ArmPreset(
        view_side=96,
        image_pixels=96 * 96,
        overview_pixels=144 * 144,
        thumbnail=32,
        page_side=96,
        pages_found=1,
        turns=4,
        tool_characters=512,
        prompt="brief",
        world="tiny",
    ),
}


class ArmSettings(TypedDict, total=False):
    """Defines settings of all ARM environments, in addition to the fields of `ArmPreset`.

    Args:
        preset: ``"train"`` (5 turns; images of at most 3.2 megapixels), ``"eval"`` (8 turns with
            tools and one to answer; 12.8 megapixels) or ``"tiny"`` (for a very small model on a
            CPU). Any field of `ArmPreset` may be given to change it, for example ``turns=3``.
        reward: ``"stage2"`` (the default except in ArmPreference), ``"stage1"``,
            ``"accuracy_format"`` (the default of ArmPreference, because tools cannot verify text
            alone), ``"fixed_bonus"`` or ``"outcome"``.
        call_rule: The tool calls that a reward pays for (`visenv.envs.arm.evidence`):
            ``"evidence"`` (the default for procedural samples), ``"belongs"`` (the default for
            others) or ``"published"``, the only one with ``compat="arm"``.
        mode: ``"agent"``, or ``"no_tool"`` (one turn, no tools: the paper's ablation).
        compat: ``"arm"`` reproduces the public code's faults (docs/arm.md lists them).
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """

    preset: str
    reward: str
    call_rule: CallRule
    mode: Mode
    compat: Compat
    render_mode: str | None
    on_abort: Literal["truncate", "raise"]
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


class ArmConfig(NamedTuple):
    """Holds checked settings.

    Attributes:
        preset: The preset, with the given fields changed.
        reward: The name of the reward.
        call_rule: The rule for the tool calls that the reward counts; None if not given.
        agent: Whether there are tools.
        compat: ``"arm"`` or None.
        env: The given arguments of `VisEnv`.
    """

    preset: ArmPreset
    reward: str
    call_rule: CallRule | None
    agent: bool
    compat: Compat
    env: dict[str, Any]


def choose(env_id: str, maker: Callable[..., Any], settings: ArmSettings) -> ArmConfig:
    """Look up the preset, and check all settings.

    Args:
        env_id: The id of the environment, for errors.
        maker: The function that creates the environment; errors list its arguments.
        settings: The given settings.

    Raises:
        UnknownNameError: If a setting or its value is unknown; suggests the nearest.
        ConfigurationError: If a number is out of range.
    """
    changes: dict[str, Any] = dict(settings)
    name = changes.pop("preset", "train")
    reward = changes.pop("reward", "stage2")
    call_rule = changes.pop("call_rule", None)
    mode = changes.pop("mode", "agent")
    compat = changes.pop("compat", None)
    env = pop_env_options(changes)
    check_choice("reward", reward, (*REWARDS, "outcome"))
    check_choice("call_rule", call_rule or "evidence", get_args(CallRule))
    check_choice("mode", mode, get_args(Mode))
    check_choice("compat mode", compat or "arm", ("arm",))
    preset = choose_preset(env_id, maker, PRESETS, name, changes)
    agent = mode == "agent"
    if agent and preset.turns < 2:
        raise ConfigurationError(
            "turns must be at least 2, one with tools and one to answer, got "
            f'{preset.turns}. Without tools: mode="no_tool".'
        )
    return ArmConfig(preset, reward, call_rule, agent, compat, env)
