"""Runs the episodes of an environment with habitat-lab in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.simulators.host import SimulatorReply
from visenv.simulators.session import SimulatorSession
from visenv.simulators.settings import SimulatorSpec
from visenv.types import Image, Sample

from ...dialects.habitat import REASONS
from ...ground_truth import HouseTruth
from ...simulation import HouseSimulation
from ...world.goals import Clause, Goal
from ...world.state import OK, HouseState
from ...world.written import read_state, write_house

TARGET = "visenv.envs.embodied.simulators.habitat.simulator:HabitatSimulator"
DIALECTS = ("habitat", "skills")
"""The dialects whose actions the planning domain contains."""

CAMERA = "head_rgb"
"""habitat-lab's name of the camera."""


class HabitatRunner:
    """Runs habitat-lab's `Env` over House.

    Args:
        spec: The simulator.
        side: Side of a frame in pixels; 0 draws none.

    Attributes:
        name: The name in ``info["simulator"]`` and labels.
        placeholders: The modules that are placeholders in the child process, separated by commas;
            ``""`` before the first episode.
    """

    name = "habitat:house"

    def __init__(self, spec: SimulatorSpec, side: int) -> None:
        self.session = SimulatorSession(spec)
        self.side = side
        self.placeholders = ""

    def begin(self, sample: Sample) -> HouseSimulation:
        """Begin the episode of a sample.

        Raises:
            ConfigurationError: If habitat-lab or OpenGL is missing, or the planning domain lacks
                actions of the task.
            ServiceError: If the simulator fails.
        """
        simulation = self.start(sample)
        host = self.session.host
        if host is not None:
            self.placeholders = ", ".join(host.facts["placeholders"])
        return simulation

    def start(self, sample: Sample) -> HouseSimulation:
        """Begin the episode of a sample in House."""
        truth = sample.truth_as(HouseTruth)
        if truth.dialect not in DIALECTS:
            raise ConfigurationError(
                f'simulator="habitat" supports tasks in the dialects {", ".join(DIALECTS)}, got '
                f"{truth.dialect!r}."
            )
        return HabitatSimulation(truth, self.session, self.side)

    def close(self) -> None:
        """Release the simulator."""
        self.session.end()


class HabitatSimulation(HouseSimulation):
    """Represents an episode whose rules, success and progress are those of habitat-lab.

    This process also stores the state of the house that the child reports, for the planner and the
    map.

    Args:
        truth: The task.
        session: The simulator.
        side: Side of a frame in pixels; 0 draws none.
    """

    def __init__(self, truth: HouseTruth, session: SimulatorSession, side: int) -> None:
        super().__init__(truth)
        self._session = session
        self._side = side
        task = {
            "world": write_house(self.house),
            "skills": [[each.verb, each.object, each.by_kind] for each in self.dialect.actions],
            "goal": write_goal(truth.goal),
        }
        self._follow(session.reset(task, self._frames))

    @override
    def act(self, action_id: int) -> tuple[bool, dict[str, Any]]:
        """Execute a skill; return whether it was valid, and facts about it.

        Raises:
            ServiceError: If the simulator fails.
        """
        before = self.progress.ever
        code = self._follow(self._session.act({"skill": action_id}, self._frames))
        met = self.progress.ever
        return not code, {
            "feedback": self.dialect.explain(self.state, self.dialect.actions[action_id], code),
            "step": self.steps,
            "progress": self.progress.share,
            "met": [index for index, each in enumerate(met) if each and not before[index]],
            "conditions": len(met),
            "success": self.succeeded,
            "swept": self.sweep.update(self.state),
        }

    def read(self, facts: Mapping[str, Any]) -> HouseState:
        """Return the state that the simulator reports.

        Raises:
            ValueError: If it contains a name that is not in the house.
        """
        state, house = read_state(self.house, facts["state"]), self.house
        items = {state.held, *state.places} - {""}
        places = {state.at, *state.open} - {""}
        if not items <= house.items.keys() or not places <= house.fixtures.keys():
            raise ValueError("the state contains a name that is not in the house")
        return state

    @property
    def _frames(self) -> dict[str, Any] | None:
        return {} if self._side else None

    def _follow(self, reply: SimulatorReply) -> str:
        """Store the state that the simulator reports; return the code of an invalid skill.

        A report of another form raises `ServiceError`.
        """
        try:
            code, steps = _checked(reply.facts, len(self.goal.conditions))
            state = self.read(reply.facts)
            frame = reply.frames[CAMERA] if self._side else None
            if frame is not None and frame.shape[:2] != (self._side, self._side):
                raise ValueError(f"unexpected shape of a frame: {frame.shape}")
        except (KeyError, TypeError, ValueError) as error:
            raise self._session.fail(f"its report cannot be used: {error!r:.200}.") from error
        self.state, self.steps = state, steps
        self.progress.ever = reply.facts["met"]
        self.succeeded = reply.facts["success"]
        if frame is not None:
            self._seen = self.steps, Image.from_pixels(frame)
        return code


def _checked(facts: Mapping[str, Any], conditions: int) -> tuple[str, int]:
    """Return the code and the number of steps; a missing fact or another type raises an error."""
    code, steps, met, success = (facts[name] for name in ("code", "steps", "met", "success"))
    are_stages = isinstance(met, list) and len(met) == conditions
    if not are_stages or any(type(each) is not bool for each in (*met, success)):
        raise ValueError(f"invalid success {success!r:.40} or stages {met!r:.80}")
    if code not in (OK, *REASONS) or type(steps) is not int:
        raise ValueError(f"invalid code {code!r:.40} or steps {steps!r:.40}")
    return code, steps


def write_goal(goal: Goal) -> dict[str, Any]:
    """Return a goal as JSON (`problem.write_problem`)."""
    return {
        "conditions": [_write_clause(each) for each in goal.conditions],
        "guards": [_write_clause(each) for each in goal.guards],
    }


def _write_clause(clause: Clause) -> dict[str, Any]:
    return {
        "quantifier": clause.quantifier,
        "domains": [[*domain] for domain in clause.domains],
        "literals": [[fact.predicate, [*fact.arguments]] for fact in clause.literals],
        "count": clause.count,
    }
