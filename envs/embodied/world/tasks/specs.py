"""Lists the types of tasks by subset and dialect, and their requirements for the object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SUBSETS = (
    "base",
    "common_sense",
    "complex_instruction",
    "spatial",
    "visual_appearance",
    "long_horizon",
)
"""The six subsets of EmbodiedBench."""

LONG_PLAN = 15
"""Minimum number of actions of a plan of long_horizon."""

SHORT_PLAN = 12
"""Maximum number of actions of a plan of the other subsets."""

LONGEST_PLAN = 30
"""Maximum number of actions of any plan."""


class TaskType(NamedTuple):
    """Describes one type of task.

    Attributes:
        phrase: The key of its texts (`phrases.TEMPLATES`).
        facts: The required states of the object when it is delivered.
        needs: The ability that its object must have: an attribute of `ItemType`, or ``""``.
    """

    phrase: str
    facts: tuple[str, ...] = ()
    needs: str = ""


TASKS: Mapping[str, TaskType] = {
    "pick_and_place": TaskType("place"),
    "pick_two": TaskType("place_two"),
    "look_in_light": TaskType("light"),
    "clean": TaskType("clean", ("clean",), "washed"),
    "heat": TaskType("heat", ("hot",), "heated"),
    "cool": TaskType("cool", ("cold",), "heated"),
    "stack": TaskType("stack"),
    "slice_heat": TaskType("slice_heat", ("sliced", "hot"), "sliced"),
    "slice_cool": TaskType("slice_cool", ("sliced", "cold"), "sliced"),
    "clean_heat": TaskType("clean_heat", ("clean", "hot"), "washed"),
    "clean_cool": TaskType("clean_cool", ("clean", "cold"), "washed"),
    "rearrange": TaskType("place"),
    "rearrange_each": TaskType("place_each"),
    "rearrange_all": TaskType("place_all"),
    "leave_open": TaskType("leave_open"),
    "if_there": TaskType("if_there"),
}
"""All types of tasks: ALFRED's seven and their combinations, then EB-Habitat's."""

_ALFRED = ("pick_and_place", "pick_two", "look_in_light", "clean", "heat", "cool", "stack")
_ONE_OBJECT = ("pick_and_place", "clean", "heat", "cool", "stack")
_HABITAT = ("rearrange", "rearrange_each", "rearrange_all", "leave_open", "if_there")

_MIXES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "alfred": {
        "base": _ALFRED,
        "common_sense": ("pick_and_place", "look_in_light", "clean", "heat", "cool", "stack"),
        "complex_instruction": _ALFRED,
        "spatial": _ONE_OBJECT,
        "visual_appearance": _ONE_OBJECT,
        "long_horizon": ("slice_heat", "slice_cool", "clean_heat", "clean_cool"),
    },
    "habitat": {
        "base": _HABITAT,
        "common_sense": ("rearrange", "leave_open", "if_there"),
        "complex_instruction": _HABITAT,
        "spatial": ("rearrange", "leave_open"),
        "visual_appearance": ("rearrange", "leave_open"),
        "long_horizon": ("rearrange_each",),
    },
}
MIXES = {**_MIXES, "skills": _MIXES["habitat"]}
"""The types of tasks of each subset by dialect, with equal shares."""
