"""Runs House's episodes with ai2thor, for the environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.simulators.session import SimulatorSession
from visenv.simulators.settings import SimulatorSpec
from visenv.types import Pixels, Sample

from ...dialects.alfred import AlfredDialect
from ...dialects.base import Action, Dialect
from ...ground_truth import HouseTruth
from ...simulation import HouseSimulation
from ...world.house import FurnishedHouse
from ...world.render.camera import item_position
from ...world.state import FLOOR, OK, HouseState, ItemPlace
from .actions import parse_action

_SAME_PLACE = 0.02

REASONS: Mapping[str, str] = {
    "not_found": "There is no {name} in this scene. Find another object.",
    "unreachable": "The robot cannot go to the {name}.",
    "refused": "{message}",
}
"""Texts of the reasons why an action failed, in addition to the codes of `AlfredDialect`."""


class ThorDialect(AlfredDialect):
    """Defines EB-ALFRED's actions as they exist in a scene of ai2thor.

    Args:
        house: The house of the episode.
        names: The numbered actions.
    """

    def __init__(self, house: FurnishedHouse, names: list[str]) -> None:
        self._listed = names
        super().__init__(house)

    @override
    def make_actions(self) -> list[Action]:
        """Return the actions of the list."""
        return [Action(*parse_action(name)) for name in self._listed]


class ThorRunner:
    """Runs tasks of House with ai2thor in a child process.

    Args:
        spec: The simulator.
        name: The simulator and its player.
        forgets: Whether the receptacle into which objects are put is forgotten as in
            EmbodiedBench.
    """

    def __init__(self, spec: SimulatorSpec, name: str, forgets: bool) -> None:
        self.name = name
        self.session = SimulatorSession(spec)
        self.forgets = forgets

    def begin(self, sample: Sample) -> HouseSimulation:
        """Begin the episode of a sample.

        Raises:
            ConfigurationError: If ai2thor is not installed.
            ServiceError: If ai2thor or its player fails.
        """
        return ThorSimulation(sample.truth_as(HouseTruth), self.session, self.forgets)

    def close(self) -> None:
        """Release the simulator."""
        self.session.end()


class ThorSimulation(HouseSimulation):
    """Represents an episode whose actions ai2thor executes; `state` is reported by ai2thor.

    Args:
        truth: The task.
        session: The connection to the simulator.
        forgets: See `ThorRunner`.
    """

    def __init__(self, truth: HouseTruth, session: SimulatorSession, forgets: bool) -> None:
        super().__init__(truth)
        scene = {
            "house": {"seed": truth.seed, "options": asdict(truth.options)},
            "object_poses": poses(self.house),
        }
        task = {"scene": scene, "more": list(self.dialect.names), "forgets": forgets}
        self._take_over(session, session.reset(task).facts)

    @override
    def act(self, action_id: int) -> tuple[bool, dict[str, Any]]:
        """Execute an action; return whether it was valid, and facts about it."""
        facts = self.session.act({"action_id": action_id}).facts
        self.state = self.read(facts["state"])
        feedback = explain(self.dialect, self.state, action_id, facts["code"], facts["message"])
        return facts["code"] == OK, {**self._judge(feedback), "code": facts["code"]}

    def read(self, facts: Mapping[str, Any]) -> HouseState:
        """Return the state that the simulator reports."""
        return read_state(self.house, facts)

    def _take_over(self, session: SimulatorSession, facts: Mapping[str, Any]) -> None:
        """Use the actions and the state of the simulator after its reset."""
        self.session = session
        self.dialect = ThorDialect(self.house, facts["actions"])
        self.state = self.read(facts["state"])
        self.progress.update(self.state)

    @override
    def _draw(self, side: int, antialias: bool) -> Pixels:
        frame: Pixels = self.session.frames({})["agent"]
        return frame


def explain(dialect: Dialect, state: HouseState, action_id: int, code: str, message: str) -> str:
    """Return the feedback about an action.

    Args:
        dialect: The actions.
        state: The state after the action.
        action_id: The action.
        code: The result of the action; see `ActionResult`.
        message: The message of ai2thor.
    """
    action = dialect.actions[action_id]
    if code not in REASONS:
        return dialect.explain(state, action, code)
    return f"The action failed. {REASONS[code].format(name=action.object, message=message)}"


def poses(house: FurnishedHouse) -> list[dict[str, Any]]:
    """Return the first positions of the objects of a house, in the form of ALFRED's annotations."""
    state, found = HouseState(house), []
    for name in house.items:
        position = item_position(state, name)
        assert position is not None
        x, y, up = position
        found.append({"objectName": name, "position": {"x": x, "y": up, "z": y}})
    return found


def read_state(house: FurnishedHouse, facts: Mapping[str, Any]) -> HouseState:
    """Return the state of a house from the report of the simulator."""
    state = with_facts(HouseState(house), facts)
    state.dirty &= house.dirty
    for name, each in facts["objects"].items():
        if name in house.items and each["holder"]:
            x, up, y = each["at"]
            state.places[name] = _place(state, each["holder"], (x, y, up))
    here = [
        name
        for name, each in house.fixtures.items()
        if not each.host and math.dist(each.standpoint, facts["agent"]) < _SAME_PLACE
    ]
    at = state.fixture_of(state.found) if state.found and state.found != state.held else ""
    state.at = at if at in here or not here else here[0]
    return state


def with_facts(state: HouseState, facts: Mapping[str, Any]) -> HouseState:
    """Return a state with the reported facts about objects, except for their places."""
    house = state.house
    known = {**house.fixtures, **house.items}
    objects = {name: each for name, each in facts["objects"].items() if name in known}
    for name in ("open", "on", "sliced"):
        setattr(state, name, {key for key, each in objects.items() if each[name]})
    state.places = {}
    state.dirty = set(house.items) - set(facts["clean"])
    state.hot, state.cold = set(facts["hot"]), set(facts["cold"])
    state.delivered = {(item, holder) for item, holder in facts["delivered"] if holder in known}
    state.held = facts["held"]
    state.found, state.focus, state.target = facts["found"], facts["focus"], facts["target"]
    return state


def _place(state: HouseState, holder: str, at: tuple[float, float, float]) -> ItemPlace:
    """Return the place in a holder that is nearest to a position."""
    house = state.house
    if holder in house.items:
        return ItemPlace(holder, 0)
    if holder in house.fixtures:
        fixture, is_open = house.fixtures[holder], holder in state.open
        slots = [math.dist(fixture.slot(index, is_open), at) for index in range(fixture.type.slots)]
        return ItemPlace(holder, int(np.argmin(slots)))
    spots = [
        (math.dist(each.floor_slot(index), at), name, index)
        for name, each in house.fixtures.items()
        for index in range(3)
    ]
    _, name, index = min(spots)
    return ItemPlace(f"{FLOOR}{name}", index)
