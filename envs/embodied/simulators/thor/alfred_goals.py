"""Translates ALFRED's seven types of tasks to goals over the objects of a scene.

The numbers of conditions are ALFRED's: one for each fact, and, if an object must also have a state,
one for the conjunction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from visenv.errors import DataError

from ...world.goals import Clause, Fact, Goal
from ...world.house import FurnishedHouse

_IN, _SLICED = Fact("in", ("?0", "?1")), Fact("sliced", ("?0",))


class _Params:
    """Resolves the parameters of a task, types of objects, to names of objects of the scene."""

    def __init__(self, house: FurnishedHouse, params: Mapping[str, Any]) -> None:
        self.house = house
        self.sliced = (_SLICED,) if params.get("object_sliced") else ()
        self.targets = self._named(params, "object_target", house.items)
        self._params = params

    @property
    def parents(self) -> tuple[str, ...]:
        return self._named(
            self._params, "parent_target", {**self.house.fixtures, **self.house.items}
        )

    @property
    def vessels(self) -> tuple[str, ...]:
        return self._named(self._params, "mrecep_target", self.house.items)

    @property
    def lamps(self) -> tuple[str, ...]:
        return self._named(self._params, "toggle_target", self.house.fixtures)

    def some(self, *facts: Fact, over: tuple[tuple[str, ...], ...] = (), count: int = 1) -> Clause:
        """Return the clause that at least `count` targets fulfill the facts.

        If the task is about a slice, the targets must also be sliced.
        """
        return Clause("exists", (self.targets, *over), (*facts, *self.sliced), count)

    def _named(
        self, params: Mapping[str, Any], key: str, objects: Mapping[str, Any]
    ) -> tuple[str, ...]:
        kind = str(params.get(key) or "")
        kind = kind.removesuffix("Sliced").removesuffix("Basin")
        found = tuple(name for name, each in objects.items() if each.kind == kind)
        if not found:
            raise DataError(f"The scene has no object of {key} {kind!r}.")
        return found


def _place(params: _Params) -> list[Clause]:
    return [params.some(_IN, over=(params.parents,))]


def _place_two(params: _Params) -> list[Clause]:
    both = Clause(
        "exists",
        (params.targets, params.parents, params.targets),
        (_IN, Fact("in", ("?2", "?1")), *params.sliced),
    )
    return [params.some(_IN, over=(params.parents,)), both]


def _examine(params: _Params) -> list[Clause]:
    return [params.some(Fact("held", ("?0",))),
            Clause("exists", (params.lamps,), (Fact("on", ("?0",)),))]  # fmt: skip


def _treated(state: str) -> Callable[[_Params], list[Clause]]:
    def conditions(params: _Params) -> list[Clause]:
        over, done = (params.parents,), Fact(state, ("?0",))
        return [params.some(_IN, over=over), params.some(done), params.some(_IN, done, over=over)]

    return conditions


def _stack(params: _Params) -> list[Clause]:
    inside = Clause("exists", (params.vessels, params.parents), (_IN,))
    both = Clause(
        "exists",
        (params.targets, params.vessels, params.parents),
        (_IN, Fact("in", ("?1", "?2")), *params.sliced),
    )
    return [params.some(_IN, over=(params.vessels,)), inside, both]


_CONDITIONS: Mapping[str, Callable[[_Params], list[Clause]]] = {
    "pick_and_place_simple": _place,
    "pick_two_obj_and_place": _place_two,
    "look_at_obj_in_light": _examine,
    "pick_heat_then_place_in_recep": _treated("hot"),
    "pick_cool_then_place_in_recep": _treated("cold"),
    "pick_clean_then_place_in_recep": _treated("clean"),
    "pick_and_place_with_movable_recep": _stack,
}


def alfred_goal(house: FurnishedHouse, task: str, params: Mapping[str, Any]) -> Goal:
    """Return the goal of a task.

    Args:
        house: The scene.
        task: ALFRED's type of task.
        params: The ``pddl_params`` of its annotation.

    Raises:
        DataError: If there is no such type, or the scene lacks an object of the task.
    """
    if task not in _CONDITIONS:
        raise DataError(f"task_type must be one of {', '.join(_CONDITIONS)}, got {task!r}.")
    read = _Params(house, params)
    conditions = _CONDITIONS[task](read)
    if read.sliced:
        two = task == "pick_two_obj_and_place"
        counts = (1, 2) if two else (1,)
        conditions += [Clause("exists", (read.targets,), (_SLICED,), count) for count in counts]
    return Goal(tuple(conditions))


def planned_goal(house: FurnishedHouse, task: str, params: Mapping[str, Any]) -> Goal:
    """Return a goal that implies `alfred_goal`, with at most two variables for the planner."""
    read = _Params(house, params)
    if task == "pick_two_obj_and_place":
        clause = Clause("exists", (read.targets, read.parents[:1]), (_IN, *read.sliced), 2)
        return Goal((clause,))
    if task == "pick_and_place_with_movable_recep":
        vessel = read.vessels[0]
        moved = Clause("exists", ((vessel,), read.parents), (_IN,))
        return Goal((read.some(Fact("in", ("?0", vessel))), moved))
    return alfred_goal(house, task, params)
