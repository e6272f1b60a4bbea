"""Serves House to habitat-lab as a simulator with a camera."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from gym import spaces
from habitat.core.registry import registry
from habitat.core.simulator import AgentState, RGBSensor, SensorSuite, Simulator

from ...world.house import FurnishedHouse
from ...world.render import HouseRenderer
from ...world.state import OK, HouseState
from ...world.written import read_house

_FIRST_POSITION = [0.0, 0.0, 0.0]


class _Hand:
    """Implements the part of habitat-lab's grasp manager that tasks and sensors use."""

    def __init__(self, sim: ServedHouse) -> None:
        self._sim = sim

    @property
    def is_grasped(self) -> bool:
        """Return whether the robot holds something."""
        return bool(self._sim.state.held)

    @property
    def snap_idx(self) -> int | None:
        """Return the index of the held object."""
        return self._sim.handle_to_object_id.get(self._sim.state.held)

    def is_violating_hold_constraint(self) -> bool:
        """Return False, because objects never slip out of the hand."""
        return False


class _Agents:
    """Implements habitat-lab's manager of agents for its one robot."""

    agent_names = ("main_agent",)

    def __init__(self, sim: ServedHouse) -> None:
        self._robot = SimpleNamespace(grasp_mgr=_Hand(sim))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int | None) -> SimpleNamespace:
        return self._robot

    @property
    def grasp_iter(self) -> Iterator[_Hand]:
        """Yield the hand."""
        return iter((self._robot.grasp_mgr,))

    def post_obj_load_reconfigure(self) -> None:
        """Do nothing, because the robot has no joints."""


@registry.register_sensor(name="VisenvHouseCamera")
class HouseCamera(RGBSensor):
    """Renders the view of the robot, uint8 ``[height, width, 3]``."""

    def __init__(self, config: Any, sim: ServedHouse) -> None:
        self._sim = sim
        super().__init__(config=config)

    def _get_uuid(self, *args: Any, **kwargs: Any) -> str:
        return "head_rgb"

    def _get_observation_space(self, *args: Any, **kwargs: Any) -> spaces.Box:
        shape = (self.config.height, self.config.width, 3)
        return spaces.Box(low=0, high=255, shape=shape, dtype=np.uint8)

    def get_observation(self, *args: Any, **kwargs: Any) -> Any:
        """Return the frame."""
        side, samples = int(self.config.width), int(self.config.samples)
        return self._sim.renderer.frame(self._sim.state, side, antialias=samples > 0)


@registry.register_simulator(name="VisenvHouse-v0")
class ServedHouse(Simulator):
    """Represents a house by habitat-lab's interface of simulators.

    Attributes:
        house: The house of the episode.
        renderer: Renders it.
    """

    house: FurnishedHouse
    state: HouseState
    renderer: HouseRenderer

    def __init__(self, config: Any) -> None:
        self.habitat_config = config
        self.sim_config = SimpleNamespace(enable_batch_renderer=False)
        self.agents_mgr = _Agents(self)
        self.num_articulated_agents = 1
        self.previous_step_collided = False
        self.cur_runtime_perf_scope: list[str] = []
        cameras = config.agents.main_agent.sim_sensors
        self._sensor_suite = SensorSuite(
            registry.get_sensor(each.type)(each, self) for each in cameras.values()
        )
        self._written: Any = None

    # ------------------------------------------------------------------ habitat.core.simulator

    @property
    def sensor_suite(self) -> SensorSuite:
        """Return the camera, unless it was disabled."""
        return self._sensor_suite

    @property
    def action_space(self) -> spaces.Space:
        """Return the space of the simulator's own actions, which is empty: tasks act."""
        return spaces.Dict({})

    def reconfigure(self, config: Any, episode: Any = None) -> None:
        """Load the house of an episode, unless it is already loaded."""
        if episode.house != self._written:
            self._written = episode.house
            self.house = read_house(episode.house)
            self.renderer = HouseRenderer(self.house)
            self.handle_to_object_id = {name: each for each, name in enumerate(self.house.items)}
        self.state = HouseState(self.house)

    def reset(self) -> Any:
        """Return to the first state of the house."""
        self.state = HouseState(self.house)

    def step(self, action: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the observations, because the action of the task has already changed the state."""
        return self._sensor_suite.get_observations()

    def get_sensor_observations(self) -> None:
        """Return None, because the sensors render when their suite is queried."""

    def get_agent_state(self, agent_id: int = 0) -> AgentState:
        """Return the position of the robot in meters, with y pointing up."""
        fixture = self.house.fixtures.get(self.state.at)
        if fixture is None:
            return AgentState(_FIRST_POSITION)
        x, y = fixture.standpoint
        return AgentState([x, 0.0, y])

    def get_agent_data(self, agent_id: int | None = 0) -> SimpleNamespace:
        """Return the robot."""
        return self.agents_mgr[agent_id]

    def seed(self, seed: int) -> None:
        """Do nothing, because nothing is random."""

    def step_physics(self, seconds: float) -> None:
        """Do nothing, because House has no physics."""

    def maybe_update_articulated_agent(self) -> None:
        """Do nothing, because the state determines the camera."""

    def add_perf_timing(self, name: str, start: float) -> None:
        """Do nothing, because times are not measured."""

    def render(self, mode: str = "rgb") -> Any:
        """Return the view of the robot, if there is a camera."""
        return self._sensor_suite.get_observations().get("head_rgb")

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing, because the renderer belongs to the process."""

    # ------------------------------------------------------------------ for the planning domain

    @property
    def art_objs(self) -> list[SimpleNamespace]:
        """Return the openable fixtures, with handles."""
        return [SimpleNamespace(handle=name) for name in self.get_all_markers()]

    @property
    def receptacles(self) -> dict[str, Any]:
        """Return the receptacles by name."""
        return {name: each for name, each in self.house.fixtures.items() if each.type.slots}

    def get_all_markers(self) -> dict[str, Any]:
        """Return the openable fixtures by name."""
        return {name: each for name, each in self.house.fixtures.items() if each.type.opening}

    def get_targets(self) -> tuple[list[int], list[Any]]:
        """Return empty lists, because goals are predicates and not positions."""
        return [], []

    def apply(self, verb: str, name: str) -> None:
        """Apply an operation to the state.

        Raises:
            RuntimeError: If House forbids an operation that the planning domain allows.
        """
        code = getattr(self.state, verb)(name)
        if code != OK:
            raise RuntimeError(
                f"The planning domain allows {verb} {name}, but House returns {code!r}."
            )

    def candidates(self, kind: str) -> list[str]:
        """Return the objects of a type: first the one in view, then from left to right."""
        state = self.state
        last = ("~", 0)
        return sorted(
            self.house.of_kind(kind),
            key=lambda name: (
                name != state.found,
                name != state.focus,
                tuple(state.places.get(name, last)),
            ),
        )
