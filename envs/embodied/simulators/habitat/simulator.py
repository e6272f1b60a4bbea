"""Defines the simulator of ``simulator="habitat"``: habitat-lab over House, in a child process.

A task is ``{"world": house, "skills": rows, "goal": goal}`` (`HouseEpisode`), and an action is
``{"skill": number}``. Success, progress and the reason of an invalid skill are habitat-lab's
measures.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import logging
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from visenv.simulators.opengl import prepare_opengl
from visenv.simulators.protocol import Facts, SetupError

from . import placeholders

VERSION = "0.3.3"
_CONFIG = Path(__file__).parent / "configs/house.yaml"


class HabitatSimulator:
    """Runs habitat-lab's `Env` over a served house."""

    def __init__(self) -> None:
        self.env: Any = None
        self._options: Mapping[str, Any] = {}
        self._observations: Mapping[str, Any] = {}

    def start(self, options: Mapping[str, Any]) -> Facts:
        """Import habitat-lab.

        Options: ``side`` and ``samples`` of the camera; ``side`` 0 disables it.

        Raises:
            ImportError: If habitat-lab is missing.
            SetupError: If it has another version.
            OpenGLError: If the camera is enabled and OpenGL cannot draw.
        """
        self._options = dict(options)
        backend = prepare_opengl() if options["side"] else ""
        facts = import_habitat()
        return {**facts, "opengl": backend}

    def reset(self, task: Mapping[str, Any]) -> Facts:
        """Begin an episode."""
        episode = self.episode_of(task)
        if self.env is None:
            self.env = self._make(episode)
        else:
            self.env.episodes = [episode]
        self._observations = self.env.reset()
        return self.facts()

    def act(self, request: Mapping[str, Any]) -> Facts:
        """Execute a skill: ``{"skill": number}``."""
        arguments = {"skill": int(request["skill"])}
        self._observations = self.env.step({"action": "skill", "action_args": arguments})
        return self.facts()

    def facts(self) -> Facts:
        """Return the measures of habitat-lab and the state of the house."""
        metrics = self.env.get_metrics()
        stages = metrics["pddl_stage_goals"]
        return {
            "success": bool(metrics["pddl_success"]),
            "met": [bool(stages[f"condition_{each}_success"]) for each in range(len(stages))],
            "code": metrics["skill_outcome"],
            "steps": int(metrics["num_steps"]),
            "holds": bool(self._observations["is_holding"][0]),
            "over": bool(self.env.episode_over),
            "state": self.read_state(),
        }

    def frames(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the camera's frame after the last action."""
        return {"head_rgb": self._observations["head_rgb"]}

    def snapshot(self) -> bytes:
        """Return the state of the house and of the measures."""
        return json.dumps(self.facts()).encode()

    def restore(self, snapshot: bytes) -> Facts:
        """Restore a state of the current task."""
        saved = json.loads(snapshot)
        env, task = self.env, self.env.task
        self.write_state(saved["state"])
        measures = task.measurements.measures
        measures["num_steps"]._metric = env._elapsed_steps = saved["steps"]
        task.actions["skill"].code = saved["code"]
        stages = measures["pddl_stage_goals"]
        stages._stage_succ = [f"condition_{each}" for each, met in enumerate(saved["met"]) if met]
        given = {"episode": env.current_episode, "task": task, "observations": None}
        for name in ("pddl_success", "pddl_stage_goals", "skill_outcome"):
            measures[name].update_metric(**given)
        task._is_episode_active, env._episode_over = not saved["over"], saved["over"]
        self._observations = task._get_observations(env.current_episode)
        return self.facts()

    def close(self) -> None:
        """Close habitat-lab's environment."""
        if self.env is not None:
            self.env.close()

    # ------------------------------------------------------------------ overridden for other worlds

    def episode_of(self, task: Mapping[str, Any]) -> Any:
        """Return the episode of a task."""
        from .task import HouseEpisode

        given: dict[str, Any] = {
            "episode_id": "0",
            "scene_id": "House",
            "start_position": [0.0, 0.0, 0.0],
            "start_rotation": [0.0, 0.0, 0.0, 1.0],
        }
        return HouseEpisode(**given, house=task["world"], skills=task["skills"], goal=task["goal"])

    def config(self) -> Any:
        """Return habitat-lab's configuration with the required frame size."""
        import habitat
        from habitat.config import read_write

        from . import served  # noqa: F401  registers the simulator and its camera

        side, samples = int(self._options["side"]), int(self._options["samples"])
        config = habitat.get_config(str(_CONFIG))
        with read_write(config):
            cameras = config.habitat.simulator.agents.main_agent.sim_sensors
            if side:
                cameras.head_rgb.update({"width": side, "height": side, "samples": samples})
            else:
                del cameras["head_rgb"]
        return config

    def read_state(self) -> Facts:
        """Return the state of the world as JSON."""
        from ...world.written import write_state

        return write_state(self.env.sim.state)

    def write_state(self, state: Facts) -> None:
        """Restore a state of the world."""
        from ...world.written import read_state

        self.env.sim.state = read_state(self.env.sim.house, state)

    def _make(self, episode: Any) -> Any:
        """Return habitat-lab's environment."""
        import habitat
        from habitat.datasets import make_dataset

        from .skills import register_configs

        register_configs()
        config = self.config()
        dataset = config.habitat.dataset
        return habitat.Env(
            config, dataset=make_dataset(dataset.type, config=dataset, episodes=[episode])
        )


def import_habitat() -> Facts:
    """Import habitat-lab; return versions and the names of placeholders.

    Raises:
        ImportError: If it is missing.
        SetupError: If it has another version.
    """
    version = importlib.metadata.version("habitat-lab") if _is_installed() else ""
    if not version:
        raise ModuleNotFoundError("No module named 'habitat'", name="habitat-lab")
    if not version.startswith(VERSION):
        raise SetupError(f"habitat-lab must be version {VERSION}, found {version}.")
    with warnings.catch_warnings(), placeholders.importing() as missing:
        warnings.simplefilter("ignore")
        importlib.import_module("habitat")
    logging.getLogger("habitat").setLevel(logging.ERROR)
    return {
        "habitat-lab": version,
        "python": ".".join(map(str, sys.version_info[:3])),
        "placeholders": missing,
    }


def _is_installed() -> bool:
    try:
        importlib.metadata.version("habitat-lab")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
