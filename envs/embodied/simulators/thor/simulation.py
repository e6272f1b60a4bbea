"""ThorWorld: House's episodes played by ai2thor, for the environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from visenv.simulators.session import SimulatorSession
from visenv.simulators.settings import SimulatorSpec
from visenv.types import Pixels, Sample

from ...dialects.alfred import AlfredDialect
from ...dialects.base import Action
from ...ground_truth import HouseTruth
from ...simulation import HouseSimulation
from ...world.house import House
from ...world.render.camera import item_position
from ...world.state import FLOOR, OK, Place, State
from .actions import parse_action

_SAME_PLACE = 0.02

REASONS: Mapping[str, str] = {
    "not_found": "There is no {name} in this scene. Find another object.",
    "unreachable": "The robot cannot go to the {name}.",
    "refused": "{message}",
}
"""Why an action failed, beside the codes of `AlfredDialect`."""


class ThorDialect(AlfredDialect):
    """EB-ALFRED's actions as ai2thor's scene has them.

    Args:
        house: The house of the episode.
        names: The numbered actions.
    """

    def __init__(self, house: House, names: list[str]) -> None:
        self._listed = names
        self.message = ""
        super().__init__(house)

    def make_actions(self) -> list[Action]:
        """Return the actions of the list."""
        return [Action(*parse_action(name)) for name in self._listed]

    def explain(self, state: State, action: Action, code: str) -> str:
        """Return what is said about an action."""
        if code not in REASONS:
            return super().explain(state, action, code)
        reason = REASONS[code].format(name=action.object, message=self.message)
        return f"The action failed. {reason}"


class ThorWorld:
    """Plays tasks of House with ai2thor in a child process.

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
        """Give the simulator back."""
        self.session.end()


class ThorSimulation(HouseSimulation):
    """An episode whose actions ai2thor carries out; `state` is what ai2thor reports.

    Args:
        truth: The task.
        session: Reaches the simulator.
        forgets: See `ThorWorld`.
    """

    def __init__(self, truth: HouseTruth, session: SimulatorSession, forgets: bool) -> None:
        super().__init__(truth)
        self.session = session
        own = AlfredDialect(self.house)
        scene = {
            "house": {"seed": truth.seed, "options": asdict(truth.options)},
            "object_poses": poses(self.house),
        }
        task = {"scene": scene, "more": list(own.names), "forgets": forgets}
        facts = session.reset(task).facts
        self.dialect: AlfredDialect = ThorDialect(self.house, facts["actions"])
        self.state = read_state(self.house, facts["state"])
        self.progress.update(self.state)

    def act(self, action_id: int) -> tuple[bool, dict[str, Any]]:
        """Carry out an action; return whether it was valid, and facts about it."""
        facts = self.session.act({"action_id": action_id}).facts
        self.state = read_state(self.house, facts["state"])
        dialect = self.dialect
        assert isinstance(dialect, ThorDialect)
        dialect.message = facts["message"]
        code = facts["code"]
        feedback = dialect.explain(self.state, dialect.actions[action_id], code)
        return code == OK, {**self._judge(feedback), "code": code}

    def _draw(self, side: int, antialias: bool) -> Pixels:
        return self.session.frames({})["agent"]


def poses(house: House) -> list[dict[str, Any]]:
    """Return where the objects of a house are at first, as ALFRED's annotations say it."""
    state, found = State(house), []
    for name in house.items:
        position = item_position(state, name)
        assert position is not None
        x, y, up = position
        found.append({"objectName": name, "position": {"x": x, "y": up, "z": y}})
    return found


def read_state(house: House, facts: Mapping[str, Any]) -> State:
    """Return the state of a house from what the simulator reports."""
    state = State(house)
    objects = {name: each for name, each in facts["objects"].items()
               if name in house.items or name in house.fixtures}  # fmt: skip
    state.places = {}
    for name, each in objects.items():
        if each["open"]:
            state.open.add(name)
        if each["on"]:
            state.on.add(name)
        if each["sliced"]:
            state.sliced.add(name)
    for name, each in objects.items():
        if each["holder"]:
            x, up, y = each["at"]
            state.places[name] = _place(state, each["holder"], (x, y, up))
    state.held = facts["held"]
    state.hot, state.cold = set(facts["hot"]), set(facts["cold"])
    state.dirty = set(house.dirty) - set(facts["clean"])
    state.delivered = {(item, holder) for item, holder in facts["delivered"]}
    state.found, state.focus, state.target = facts["found"], facts["focus"], facts["target"]
    here = [name for name, each in house.fixtures.items()
            if not each.host and math.dist(each.standpoint, facts["agent"]) < _SAME_PLACE]  # fmt: skip
    state.at = state.fixture_of(state.found) if state.found and state.found != state.held else ""
    if state.at not in here:
        state.at = here[0] if here else ""
    return state


def _place(state: State, holder: str, at: tuple[float, float, float]) -> Place:
    """Return the place in a holder that is nearest to a position."""
    house = state.house
    if holder in house.items:
        return Place(holder, 0)
    if holder in house.fixtures:
        fixture, is_open = house.fixtures[holder], holder in state.open
        slots = [math.dist(fixture.slot(index, is_open), at) for index in range(fixture.type.slots)]
        return Place(holder, int(np.argmin(slots)))
    spots = [
        (math.dist(each.floor_slot(index), at), name, index)
        for name, each in house.fixtures.items()
        for index in range(3)
    ]
    _, name, index = min(spots)
    return Place(f"{FLOOR}{name}", index)

