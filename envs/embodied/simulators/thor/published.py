"""Runs EB-ALFRED's published tasks in the scenes of a Unity player."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from visenv.errors import DataError
from visenv.simulators.session import SimulatorSession
from visenv.types import Sample, Video

from ...datasets.published import PublishedTruth
from ...embodiedbench import EBAlfred
from ...simulation import HouseSimulation
from ...world.goals import Progress
from ...world.house import FurnishedHouse
from ...world.state import HouseState, ItemPlace
from ..published import house_truth
from .alfred_goals import alfred_goal, planned_goal
from .scene_house import scene_house
from .simulation import ThorRunner, ThorSimulation, with_facts


class EBAlfredScenes(EBAlfred):
    """Runs EB-ALFRED's published tasks, see `EBAlfred`."""

    ground_truths: ClassVar[tuple[type, ...]] = (PublishedTruth,)


class PublishedRunner(ThorRunner):
    """Runs published tasks with ai2thor and a Unity player."""

    @override
    def begin(self, sample: Sample) -> HouseSimulation:
        """Begin the episode of a task.

        Raises:
            DataError: If its annotation does not match the scene.
            ConfigurationError: If ai2thor is not installed.
            ServiceError: If ai2thor or its player fails.
        """
        truth = sample.truth_as(PublishedTruth)
        return PublishedSimulation(truth, self.session, self.forgets)


class PublishedSimulation(ThorSimulation):
    """Represents an episode of a published task.

    The scene is converted to a house, so that House's goals, planner and oracle can be used.

    Args:
        published: The task.
        session: The connection to the simulator.
        forgets: See `ThorRunner`.

    Raises:
        DataError: If the annotation does not match the scene.
    """

    def __init__(self, published: PublishedTruth, session: SimulatorSession, forgets: bool) -> None:
        content = json.loads(published.content)
        scene, params = content.get("scene"), content.get("pddl_params")
        if not isinstance(scene, dict) or not isinstance(params, dict) or not published.scene:
            raise DataError(
                f"The annotation of {published.task!r} must have the objects scene and "
                f"pddl_params, and scene.floor_plan; it has {sorted(content)}."
            )
        facts = session.reset({"scene": scene, "more": [], "forgets": forgets}).facts
        house = scene_house(facts["state"]["objects"])
        goal = alfred_goal(house, published.task, params)
        planned = planned_goal(house, published.task, params)
        self._begin(house_truth(published, "alfred", planned), house)
        self.goal, self.progress = goal, Progress(goal, latched=False)
        self._take_over(session, facts)

    @override
    def films(self) -> tuple[Video, ...]:
        """Return an empty tuple, because there is no map of a scene."""
        return ()

    @override
    def read(self, facts: Mapping[str, Any]) -> HouseState:
        """Return the state that the simulator reports."""
        return read_scene_state(self.house, facts)


def read_scene_state(house: FurnishedHouse, facts: Mapping[str, Any]) -> HouseState:
    """Return the state of a scene from the report of the simulator."""
    state = with_facts(HouseState(house), facts)
    slots: dict[str, int] = {}
    for name, each in facts["objects"].items():
        holder = each["holder"]
        if name in house.items and holder:
            state.places[name] = ItemPlace(holder, slots.setdefault(holder, 0))
            slots[holder] += 1
    if state.found and state.found != state.held:
        state.at = state.fixture_of(state.found)
    return state
