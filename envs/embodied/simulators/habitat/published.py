"""Runs EB-Habitat's published tasks in ReplicaCAD, with habitat-sim in a child process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from visenv.simulators.session import SimulatorSession
from visenv.types import Sample, Video

from ...datasets.published import PublishedTruth
from ...dialects import SkillsDialect
from ...dialects.habitat import OBJECTS
from ...embodiedbench import EBHabitat
from ...simulation import HouseSimulation
from ...world.goals import Clause, Fact, Goal
from ...world.house import Fixture, FurnishedHouse, Item, Room
from ...world.items import ItemLook
from ...world.state import HouseState
from ..published import house_truth
from .player import HabitatRunner, HabitatSimulation

REPLICA_TARGET = "visenv.envs.embodied.simulators.habitat.replica_cad:ReplicaCADSimulator"

_FIXTURES = (
    *("Cabinet", "Cabinet_2", "Cabinet_3", "Cabinet_4", "Fridge", "ArmChair", "DiningTable"),
    *("DiningTable_2", "TVStand", "Sink", "CounterTop", "CounterTop_2", "Sofa", "Drawer"),
    "Drawer_2",
)
"""The receptacles of the 70 skills, by House's names."""

_UNKNOWN = Clause("exists", ((),), (Fact("held", ("?0",)),))
"""Stands for a subgoal: habitat-lab checks the published ones."""


class EBHabitatScenes(EBHabitat):
    """Runs EB-Habitat's published tasks, see `EBHabitat`."""

    ground_truths: ClassVar[tuple[type, ...]] = (PublishedTruth,)


class ReplicaRunner(HabitatRunner):
    """Runs habitat-lab's `Env` over habitat-sim with ReplicaCAD."""

    name = "habitat:replica_cad"

    @override
    def start(self, sample: Sample) -> HouseSimulation:
        """Begin the episode of a task."""
        return ReplicaSimulation(sample.truth_as(PublishedTruth), self.session, self.side)


class ReplicaSimulation(HabitatSimulation):
    """Represents an episode of a published task.

    A house without rooms represents the scene: it provides the names for the 70 skills.

    Args:
        published: The task.
        session: The simulator.
        side: Side of a frame in pixels; 0 draws none.
    """

    def __init__(self, published: PublishedTruth, session: SimulatorSession, side: int) -> None:
        self._session, self._side = session, side
        episode = json.loads(published.content)
        stages = len(episode.get("subgoals") or ())
        goal = Goal((_UNKNOWN,) * max(stages, 1))
        self._begin(house_truth(published, SkillsDialect.name, goal), scene_house())
        task = {"world": {"scene": published.scene}, "episode": episode}
        self._follow(session.reset(task, self._frames))

    @override
    def films(self) -> tuple[Video, ...]:
        """Return an empty tuple, because there is no map of a scene."""
        return ()

    @override
    def read(self, facts: Mapping[str, Any]) -> HouseState:
        """Return the known part of the state: the category in the hand."""
        state = HouseState(self.house)
        held = facts["state"]["held"]
        state.held = held if held in self.house.items else ""
        return state


def scene_house() -> FurnishedHouse:
    """Return a house with the receptacles and categories of the 70 skills."""
    fixtures = [Fixture(name, name.partition("_")[0], 0, float(place), 0.0, 0.0)
                for place, name in enumerate(_FIXTURES)]  # fmt: skip
    look = ItemLook("white", "plain", "matte", "large")
    items = {word: Item(word, kind or word, look) for word, kind in OBJECTS.items()}
    rooms = (Room("kitchen", 0.0, 0.0, 1.0, 1.0),)
    return FurnishedHouse(rooms, (), (), {each.name: each for each in fixtures}, items, {})
