"""Tests presets and options: values are checked against field types, errors name the options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack

import gymnasium as gym
import pytest

from tests.environments import IDS
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.presets import check_choice, check_count, choose_preset, options_of, pop_env_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    turns: int
    view_side: int | None
    prompt: Literal["full", "brief"]
    world: str | None


PRESETS = {
    "train": Preset(turns=5, view_side=None, prompt="full", world="default"),
    "tiny": Preset(turns=2, view_side=96, prompt="brief", world=None),
}


class Settings(TypedDict, total=False):
    preset: str
    reward: str
    turns: int


def make(*, data: str = "procedural", **settings: Unpack[Settings]) -> None:
    """Make nothing."""


def chosen(name: str = "train", **changes: Any) -> Preset:
    return choose_preset("visenv/X-v0", make, PRESETS, name, changes)


def test_preset_is_the_named_one() -> None:
    assert chosen("tiny") is not None
    assert chosen("tiny") == PRESETS["tiny"]


def test_preset_takes_new_values_of_its_fields() -> None:
    changed = chosen(turns=9, view_side=64, prompt="brief", world=None)
    assert changed == Preset(turns=9, view_side=64, prompt="brief", world=None)
    assert PRESETS["train"].turns == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"turns": 0}, "turns must be a whole number of at least 1, got 0."),
        ({"turns": True}, "turns must be a whole number of at least 1, got True."),
        ({"turns": 2.0}, "turns must be a whole number of at least 1, got 2.0."),
        ({"turns": "3"}, "turns must be a whole number of at least 1, got '3'."),
        ({"turns": None}, "turns must be a whole number of at least 1, got None."),
        ({"view_side": -1}, "view_side must be a whole number of at least 1, got -1."),
        ({"world": 3}, "world must be a string, got 3."),
    ],
)
def test_value_of_the_wrong_type_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        chosen(**changes)
    assert str(error.value) == message


def test_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as error:
        chosen("tinny")
    assert str(error.value) == (
        "There is no preset called 'tinny'. Did you mean 'tiny'? Known: tiny, train."
    )


def test_unknown_choice_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"no prompt called .breif.\. Did you mean .brief."):
        chosen(prompt="breif")


def test_unknown_option_lists_every_option_once() -> None:
    with pytest.raises(UnknownNameError) as error:
        chosen(turn=3)
    assert str(error.value) == (
        "There is no option of visenv/X-v0 called 'turn'. Did you mean 'turns'? "
        "Known: data, preset, prompt, reward, turns, view_side, world."
    )


def test_options_of_a_maker_include_those_of_its_shared_settings() -> None:
    assert options_of(make) == ["data", "preset", "reward", "turns"]


def test_env_options_are_taken_out() -> None:
    settings = {"turns": 3, "render_mode": "ansi", "on_abort": "raise"}
    assert pop_env_options(settings) == {"render_mode": "ansi", "on_abort": "raise"}
    assert settings == {"turns": 3}


def test_choice_may_be_any_value() -> None:
    check_choice("reward", "f1", ("f1", "em"))
    with pytest.raises(UnknownNameError, match="no reward called"):
        check_choice("reward", ["f1"], ("f1", "em"))


@pytest.mark.parametrize(("value", "least"), [(0, 0), (1, 1), (7, 1)])
def test_count_from_its_least_up(value: int, least: int) -> None:
    check_count("calls", value, least)
    with pytest.raises(
        ConfigurationError, match=f"calls must be a whole number of at least {least}"
    ):
        check_count("calls", least - 1, least)


@pytest.mark.parametrize("env_id", IDS)
def test_environment_lists_each_of_its_options_once(env_id: str) -> None:
    with pytest.raises(UnknownNameError, match="option of") as error:
        gym.make(env_id, no_such_option=1)
    options = str(error.value).partition("Known: ")[2].removesuffix(".").split(", ")
    assert len(options) == len(set(options))
    assert {"data", "preset", "reward", "on_abort", "prompt"} <= {*options}
