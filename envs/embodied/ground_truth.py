"""Defines the ground truth of a task in a house."""

from __future__ import annotations

from dataclasses import fields
from typing import Literal

from pydantic.dataclasses import dataclass

from visenv.types import GroundTruth
from visenv.types.ground_truth import STRICT, Numbers, Texts

from .world.goals import Goal
from .world.tasks import TaskOptions


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class HouseTruth(GroundTruth):
    """Holds the ground truth of a task. The seed and the options determine the house.

    Attributes:
        seed: The seed of the task.
        dialect: The dialect of its actions.
        subset: The subset that it was drawn for, or ``"all"``.
        split: ``"train"`` or ``"eval"``.
        rooms: Number of rooms of the house; 0 for 3 to 6.
        kinds: Number of types of objects.
        extra: Number of further objects.
        lookalikes: Number of objects that a reference by look chooses from.
        fixtures: The fixtures of a house of one room.
        tasks: The types of tasks that it was drawn from.
        longest_plan: Maximum number of actions of a plan; 0 for the bounds of the subset.
        types: The types of objects of tasks; empty for all.
        attributes: The attributes that a reference by look may name.
        colors: The colors of the objects of such a reference; empty if they were drawn.
        apart: Whether the objects to choose from had to be in different fixtures.
        task: The type of task.
        goal: The conditions and guards of the task.
        plan: Ids of actions that reach the goal.
        targets: The object that the reference matches, if there are look-alikes.
        others: The names of the look-alikes of the object of the task.
    """

    seed: int
    dialect: str
    subset: str
    split: Literal["train", "eval"]
    rooms: int
    kinds: int
    extra: int
    lookalikes: int
    fixtures: Texts
    tasks: Texts
    longest_plan: int
    types: Texts
    attributes: Texts
    task: str
    goal: Goal
    plan: Numbers
    targets: Texts = ()
    others: Texts = ()
    colors: Texts = ()
    apart: bool = False

    @property
    def options(self) -> TaskOptions:
        """Return the options from which the task was drawn."""
        return TaskOptions(**{each.name: getattr(self, each.name) for each in fields(TaskOptions)})
