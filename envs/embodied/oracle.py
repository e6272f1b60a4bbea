"""Writes the turns of the oracle: which object it looks at next, and its thoughts."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from .simulation import HouseSimulation
from .world.items import word_of

_LOOKS = ("size", "color", "pattern")
"""The attributes of an object that the oracle names, if references may name them."""


def next_look(simulation: HouseSimulation, done: Container[str]) -> list[int]:
    """Return the action that looks at the next object of the right type.

    Args:
        simulation: The episode.
        done: Names of the executed actions.

    Returns:
        The id of one action; an empty list after the object of the task was seen.
    """
    truth, state = simulation.truth, simulation.state
    if not truth.targets or state.held or state.found in truth.targets:
        return []
    for name in sorted((*truth.targets, *truth.others)):
        place = name if truth.dialect == "alfred" else simulation.house.places[name][0]
        index = simulation.dialect.id_by_object("go_to", place)
        if simulation.dialect.names[index] not in done:
            return [index]
        if name in truth.targets:
            return []
    return []


def thought(
    simulation: HouseSimulation,
    actions: int,
    oracle: Literal["plan", "search"],
    *,
    is_first: bool,
) -> tuple[str, str, str]:
    """Return the texts of a turn: what is in view, the reasoning, and the length of the plan.

    Args:
        simulation: The episode.
        actions: Number of actions of the plan.
        oracle: In a ``"search"``, the reasoning names the object of the task, and says whether it
            is in view.
        is_first: Whether this is the first turn.
    """
    house, focus = simulation.house, simulation.state.focus
    if focus in house.items:
        seen = _described(simulation, focus)
    else:
        seen = house.fixtures[focus].type.word if focus else "a room"
    if oracle == "search" and simulation.truth.targets:
        reasoning = _comparison(simulation, focus)
    else:
        reasoning = "I begin." if is_first else "I go on."
    return f"I see {seen}.", reasoning, f"{actions} actions."


def _comparison(simulation: HouseSimulation, focus: str) -> str:
    targets = simulation.truth.targets
    wanted = f"I look for {_described(simulation, targets[0])}."
    if focus not in simulation.house.items:
        return wanted
    return f"{wanted} {'This is it.' if focus in targets else 'This is another one.'}"


def _described(simulation: HouseSimulation, name: str) -> str:
    """Return an object's type with the attributes that references may name."""
    item = simulation.house.items[name]
    words = [getattr(item.look, each) for each in _LOOKS if each in simulation.truth.attributes]
    return f"a {' '.join([*words, word_of(item.kind)])}"
