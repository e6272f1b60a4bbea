"""Writes the turns of the oracle: which object it looks at next, and its thoughts."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Literal

from visenv.types import ToolCalled

from .simulation import HouseSimulation
from .world.goals import Goal
from .world.items import word_of
from .world.tasks import next_action

_LOOKS = ("size", "color", "pattern")
"""The attributes of an object that the oracle names, if references may name them."""


class RestOfPlan:
    """Returns the part of a plan that has not been executed.

    The planner does not know what was done before. A player that executes few actions of a plan and
    then plans again can therefore repeat the same actions forever, for example put an object into
    the sink and take it out again.
    """

    def __init__(self) -> None:
        self._goal: Goal | None = None
        self._ids: list[int] = []
        self._start = 0

    def ids(
        self, simulation: HouseSimulation, goal: Goal, calls: Sequence[ToolCalled]
    ) -> list[int]:
        """Return ids of the actions that reach a goal; empty if there is no plan.

        Args:
            simulation: The episode.
            goal: The goal. If it changes, or another action was executed, or an action failed, a
                new plan is made.
            calls: The executed actions of the episode.
        """
        done = [call.arguments["action_id"] if call.ok else None for call in calls[self._start :]]
        rest = self._ids[len(done) :]
        if goal != self._goal or done != self._ids[: len(done)] or not rest:
            self._goal, self._start = goal, len(calls)
            self._ids = rest = next_action(simulation.dialect, simulation.state, goal)
        return rest


def next_look(simulation: HouseSimulation, done: Container[int]) -> list[int]:
    """Return the action that looks at the next object of the right type.

    Args:
        simulation: The episode.
        done: The ids of the executed actions.

    Returns:
        The id of one action; an empty list after the object of the task was seen.
    """
    truth, state = simulation.truth, simulation.state
    if not truth.targets or state.held or state.found in truth.targets:
        return []
    target = look_at(simulation, min(truth.targets))
    for index in looks(simulation):
        if index not in done:
            return [index]
        if index == target:
            return []
    return []


def looks(simulation: HouseSimulation) -> list[int]:
    """Return the actions that look at the objects of the right type, in the order of the oracle."""
    truth = simulation.truth
    names = sorted((*truth.targets, *truth.others))
    return list(dict.fromkeys(look_at(simulation, name) for name in names))


def look_at(simulation: HouseSimulation, name: str) -> int:
    """Return the id of the action that looks at an object, in its first place."""
    is_alfred = simulation.truth.dialect == "alfred"
    place = name if is_alfred else simulation.house.places[name][0]
    return simulation.dialect.id_by_object("go_to", place)


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
