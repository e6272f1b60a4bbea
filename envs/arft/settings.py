"""The settings of the ARFT environments, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar, get_args

from visenv.errors import ConfigurationError, UnknownNameError

from .presets import Stage
from .prompts import PromptStyle
from .rewards.qa import Compat

REWARDS = ("f1", "em", "outcome")
_TEXTS = ("prompt", "world")
StageT = TypeVar("StageT", bound=Stage)


class Settings(TypedDict, total=False):
    """Settings of both environments, beside the fields of `Stage`.

    Args:
        stage: ``"train"`` (the paper's 401,408 pixels), ``"eval"`` (12.8 megapixels, with data
            sets) or ``"tiny"`` (for a very small model on a CPU). Any field of `Stage` may be given
            to change it, for example ``turns=6``.
        reward: ``"f1"`` (the paper's), ``"em"`` (its ablation, table 3) or ``"outcome"``.
        compat: ``"arft"`` does as the public code: its rewards, its prompt that is made anew every
            turn, its harness that crops for the model (docs/arft.md lists all of it).
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """

    stage: str
    reward: Literal["f1", "em", "outcome"]
    compat: Compat
    render_mode: str | None
    on_abort: Literal["truncate", "raise"]
    image_pixels: int
    turns: int
    tool_characters: int
    prompt: PromptStyle
    world: str


class Chosen(NamedTuple, Generic[StageT]):
    """Settings, checked."""

    stage: StageT
    reward: str
    compat: Compat
    env: dict[str, Any]


def choose(
    env_id: str, stages: Mapping[str, StageT], settings: Mapping[str, Any]
) -> Chosen[StageT]:
    """Check the settings and look the stage up.

    Args:
        env_id: The environment, for errors.
        stages: Its presets.
        settings: What was given.

    Raises:
        UnknownNameError: If a setting or its value is unknown; names the nearest.
        ConfigurationError: If a number cannot be.
    """
    given = dict(settings)
    stage, reward = given.pop("stage", "train"), given.pop("reward", "f1")
    compat = given.pop("compat", None)
    env: dict[str, Any] = {
        name: given.pop(name) for name in ("render_mode", "on_abort") if name in given
    }
    for what, value, known in (
        ("stage", stage, stages),
        ("reward", reward, REWARDS),
        ("compat mode", compat or "arft", ("arft",)),
        ("prompt", given.get("prompt", "full"), get_args(PromptStyle)),
    ):
        if value not in known:
            raise UnknownNameError(what, str(value), known)
    chosen = stages[stage]
    for option, value in given.items():
        _check(env_id, chosen, option, value)
    chosen = replace(chosen, **given)
    if chosen.turns < 2:
        raise ConfigurationError("An episode needs 2 turns or more, one to act and one to answer.")
    return Chosen(chosen, reward, compat, env)


def _check(env_id: str, stage: Stage, option: str, value: object) -> None:
    known = [each.name for each in fields(stage)]
    if option not in known:
        raise UnknownNameError(f"option of {env_id}", option, [*Settings.__annotations__, *known])
    if option not in _TEXTS and (type(value) is not int or value < 1):
        raise ConfigurationError(f"{option} must be a whole number from 1 up, got {value!r}.")
