"""What the makers of the ARM environments have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import gymnasium as gym

from visenv.data.open import open_data
from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.grammar.tool_call import Compat
from visenv.rewards import RewardWrapper
from visenv.tools import Tool
from visenv.worlds.scenes import PRESETS as SCENES

from .env.judge import Judge
from .presets import STAGES, Stage
from .prompts import PromptStyle
from .rewards import REWARDS, TOP, terms

MODES = ("agent", "no_tool")


class Settings(TypedDict, total=False):
    """Settings of every ARM environment, beside the fields of `Stage`.

    Args:
        stage: ``"train"`` (5 turns; images of at most 3.2 megapixels), ``"eval"`` (8 turns of tools
            and one to answer; 12.8 megapixels) or ``"tiny"`` (for a very small model on a CPU).
            Any field of `Stage` may be given to change it, for example ``turns=3``.
        reward: ``"stage2"`` (the default but in ArmPreference), ``"stage1"``,
            ``"accuracy_format"`` (the default there: text alone leaves tools nothing to verify),
            ``"fixed_bonus"`` or ``"outcome"``.
        mode: ``"agent"``, or ``"no_tool"`` (one turn, no tools: the paper's ablation).
        compat: ``"arm"`` reproduces the public code's faults (docs/arm.md lists them).
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """

    stage: str
    reward: str
    mode: Literal["agent", "no_tool"]
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


class Chosen(NamedTuple):
    """Settings, checked."""

    stage: Stage
    reward: str
    agent: bool
    compat: Compat
    env: dict[str, Any]


def choose(env_id: str, settings: Settings) -> Chosen:
    """Check the settings and look the stage up.

    Raises:
        UnknownNameError: If a setting or its value is unknown; names the nearest.
    """
    given: dict[str, Any] = dict(settings)
    stage = given.pop("stage", "train")
    reward = given.pop("reward", "stage2")
    mode = given.pop("mode", "agent")
    compat = given.pop("compat", None)
    env: dict[str, Any] = {
        name: given.pop(name) for name in ("render_mode", "on_abort") if name in given
    }
    known = {
        "stage": (stage, STAGES),
        "reward": (reward, (*REWARDS, "outcome")),
        "mode": (mode, MODES),
        "compat mode": (compat, (None, "arm")),
        "prompt": (given.get("prompt", "full"), get_args(PromptStyle)),
    }
    for what, (value, values) in known.items():
        if value not in values:
            raise UnknownNameError(what, str(value), [each for each in values if each])
    for option in given:
        if option not in Stage.__slots__:
            names = [*Settings.__annotations__]
            raise UnknownNameError(f"option of {env_id}", option, names)
    _check_counts(given)
    chosen = Chosen(replace(STAGES[stage], **given), reward, mode == "agent", compat, env)
    if chosen.agent and chosen.stage.turns < 2:
        raise ConfigurationError(
            "An agent needs at least 2 turns, one with tools and one to answer; without tools: "
            'mode="no_tool".'
        )
    return chosen


def _check_counts(given: Mapping[str, Any]) -> None:
    for option, value in given.items():
        counts = option not in ("prompt", "world") and not (option == "view_side" and value is None)
        if counts and (type(value) is not int or value < 1):
            raise ConfigurationError(f"{option} must be a whole number from 1 up, got {value!r}.")


def seen_small(chosen: Chosen) -> Chosen:
    """For procedural scenes: shown at the size at which their details cannot be read.

    Not with ``compat="arm"``, which cuts from the picture as shown: nothing could be found there.
    """
    stage = chosen.stage
    if stage.view_side is not None or chosen.compat == "arm":
        return chosen
    return chosen._replace(stage=replace(stage, view_side=SCENES[stage.world].view_side))


def opened(data: str | Source, track: str = "all") -> Source:
    """The source that `data` is or names; of ARMBench-VL that track, unless it names another."""
    if not isinstance(data, str):
        return data
    if data.startswith("armbench:") and "track=" not in data:
        data += f"{'&' if '?' in data else '?'}track={track}"
    return open_data(data)


def finish(
    judge: type[Judge], source: Source, tools: Sequence[Tool[Any]], chosen: Chosen
) -> gym.Env[Observation, str]:
    """The environment with its reward."""
    env = judge(
        source=source,
        stage=chosen.stage,
        tools=tools if chosen.agent else (),
        compat=chosen.compat,
        **chosen.env,
    )
    if chosen.reward == "outcome":
        return env
    return RewardWrapper(env, terms(chosen.reward, chosen.compat), TOP[chosen.reward])
