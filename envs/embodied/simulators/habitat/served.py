"""ServedHouse: a simulator of habitat-lab that serves House, and its camera."""

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
    """habitat-lab's grasp manager, as far as tasks and sensors ask for it."""

    def __init__(self, sim: ServedHouse) -> None:
        self._sim = sim

    @property
    def is_grasped(self) -> bool:
        """Whether the robot holds something."""
        return bool(self._sim.state.held)

    @property
    def snap_idx(self) -> int | None:
        """The number of the held object."""
        return self._sim.handle_to_object_id.get(self._sim.state.held)

    def is_violating_hold_constraint(self) -> bool:
        """Return False: nothing slips out of the hand."""
        return False


class _Agents:
    """habitat-lab's manager of its one robot."""

    agent_names = ("main_agent",)

    def __init__(self, sim: ServedHouse) -> None:
        self._robot = SimpleNamespace(grasp_mgr=_Hand(sim))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int | None) -> SimpleNamespace:
        return self._robot

    @property
    def grasp_iter(self) -> Iterator[_Hand]:
        """The hand."""
        return iter((self._robot.grasp_mgr,))

    def post_obj_load_reconfigure(self) -> None:
        """Do nothing: the robot has no joints."""


@registry.register_sensor(name="VisenvHouseCamera")
class HouseCamera(RGBSensor):
    """What the robot sees, uint8 ``[height, width, 3]``."""

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
    """A house behind habitat-lab's interface of simulators.

    Attributes:
        house: The house of the episode.
        state: Its state.
        renderer: Draws it.
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
        """The camera, unless it was left out."""
        return self._sensor_suite

    @property
    def action_space(self) -> spaces.Space:
        """The space of the simulator's own actions: there are none, tasks act."""
        return spaces.Dict({})

    def reconfigure(self, config: Any, episode: Any = None) -> None:
        """Load the house of an episode, unless it is loaded."""
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
        """Return the observations: the action of the task has changed the state."""
        return self._sensor_suite.get_observations()

    def get_sensor_observations(self) -> None:
        """Return nothing: the sensors draw when their suite asks them."""

    def get_agent_state(self, agent_id: int = 0) -> AgentState:
        """Return where the robot stands, in meters, y pointing up."""
        fixture = self.house.fixtures.get(self.state.at)
        if fixture is None:
            return AgentState(_FIRST_POSITION)
        x, y = fixture.standpoint
        return AgentState([x, 0.0, y])

    def get_agent_data(self, agent_id: int | None = 0) -> SimpleNamespace:
        """Return the robot."""
        return self.agents_mgr[agent_id]

    def seed(self, seed: int) -> None:
        """Do nothing: nothing is random."""

    def step_physics(self, seconds: float) -> None:
        """Do nothing: House has no physics."""

    def maybe_update_articulated_agent(self) -> None:
        """Do nothing: the camera is where the state says."""

    def add_perf_timing(self, name: str, start: float) -> None:
        """Do nothing: times are not measured."""

    def render(self, mode: str = "rgb") -> Any:
        """Return what the robot sees, if there is a camera."""
        return self._sensor_suite.get_observations().get("head_rgb")

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the renderer belongs to the process."""

    # ------------------------------------------------------------------ for the planning domain

    @property
    def art_objs(self) -> list[SimpleNamespace]:
        """What opens, with handles."""
        return [SimpleNamespace(handle=name) for name in self.get_all_markers()]

    @property
    def receptacles(self) -> dict[str, Any]:
        """The receptacles by name."""
        return {name: each for name, each in self.house.fixtures.items() if each.type.slots}

    def get_all_markers(self) -> dict[str, Any]:
        """Return what opens by name."""
        return {name: each for name, each in self.house.fixtures.items() if each.type.opening}

    def get_targets(self) -> tuple[list[int], list[Any]]:
        """Return nothing: goals are predicates, not positions."""
        return [], []

    def apply(self, verb: str, name: str) -> None:
        """Change the state.

        Raises:
            RuntimeError: If House forbids what the planning domain allows.
        """
        code = getattr(self.state, verb)(name)
        if code != OK:
            raise RuntimeError(f"The planning domain allows {verb} {name}, House says {code!r}.")

    def candidates(self, kind: str) -> list[str]:
        """Return the objects of a type: what the robot looks at first, then from left to right."""
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
