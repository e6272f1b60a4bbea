"""Defines the simulator of EB-Habitat's published episodes, habitat-sim with ReplicaCAD.

It has never run here, because PyPI has no habitat-sim. Its problem files and its domain are tested
with habitat-lab alone. A task is ``{"world": {"scene": …}, "episode": …}``.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.simulators.protocol import Facts, SetupError

from .simulator import HabitatSimulator, import_habitat

ASSETS = ("replica_cad", "objects/ycb", "robots/hab_fetch")
"""The files that the folder of assets must contain."""

_CONFIG = Path(__file__).parent / "configs/replica_cad.yaml"
_INSTALL = (
    "Install it with conda (conda install habitat-sim withbullet headless -c conda-forge -c "
    "aihabitat) together with habitat-lab 0.3.3, and name that Python by interpreter=… or "
    "VISENV_SIMULATORS."
)
_DOWNLOAD = (
    "python -m habitat_sim.utils.datasets_download --uids rearrange_task_assets --data-path "
    "<folder>"
)


class ReplicaCADSimulator(HabitatSimulator):
    """Runs habitat-lab's `Env` over habitat-sim."""

    @override
    def start(self, options: Mapping[str, Any]) -> Facts:
        """Import habitat-lab and habitat-sim.

        Options: ``side``; ``assets``, the folder ``data`` of habitat-sim; ``dataset``,
        EmbodiedBench's file ``dataset.yaml``.

        Raises:
            ImportError: If habitat-lab is missing.
            SetupError: If habitat-sim, magnum or assets are missing.
        """
        missing = [name for name in ("habitat_sim", "magnum")
                   if importlib.util.find_spec(name) is None]  # fmt: skip
        if missing:
            raise SetupError(
                f"EB-Habitat's published tasks need habitat-sim with the scenes of ReplicaCAD, and "
                f"{sys.executable} lacks {' and '.join(missing)}. {_INSTALL} House needs no "
                'habitat-sim: data="procedural".'
            )
        folder = Path(str(options["assets"]) or "data").resolve()
        absent = [name for name in ASSETS if not (folder / name).is_dir()]
        if absent:
            raise SetupError(
                f"{folder} lacks {', '.join(absent)} of ReplicaCAD. Get them with: {_DOWNLOAD}, "
                "and name the folder by assets=…"
            )
        if folder.name != "data":
            raise SetupError(f"The folder of assets must be called data, got {folder}.")
        os.chdir(folder.parent)  # habitat-lab's configurations name data/… relative to it
        self._options = dict(options)
        return import_habitat()

    @override
    def episode_of(self, task: Mapping[str, Any]) -> Any:
        """Return the episode of a task."""
        from .replica_task import read_dataset, read_episode

        return read_episode(task["episode"], *read_dataset(str(self._options["dataset"])))

    @override
    def config(self) -> Any:
        """Return habitat-lab's configuration with the required frame size."""
        import habitat
        from habitat.config import read_write

        side = int(self._options["side"])
        config = habitat.get_config(str(_CONFIG))
        with read_write(config):
            cameras = config.habitat.simulator.agents.main_agent.sim_sensors
            if side:
                cameras.head_rgb_sensor.update({"width": side, "height": side})
            else:
                del cameras["head_rgb_sensor"]
        return config

    @override
    def read_state(self) -> Facts:
        """Return poses, joints and the held object; ``held`` is its category."""
        sim, task = self.env.sim, self.env.task
        objects, doors = sim.get_rigid_object_manager(), sim.art_objs
        robot = sim.get_agent_data(0)
        held = robot.grasp_mgr.snap_idx
        names = {sim.scene_obj_ids[each]: name for name, each in sim.handle_to_object_id.items()}
        return {
            "held": task.category_of(names[held]) if held in names else "",
            "robot": [[*map(float, robot.articulated_agent.base_pos)],
                      float(robot.articulated_agent.base_rot)],
            "objects": [_pose(objects.get_object_by_id(each)) for each in sim.scene_obj_ids],
            "joints": [[*map(float, each.joint_positions)] for each in doors],
            "snapped": None if held not in names else sim.scene_obj_ids.index(held),
        }  # fmt: skip

    @override
    def write_state(self, state: Facts) -> None:
        """Set the poses of the robot and the objects, and the joints of the doors."""
        import magnum

        sim = self.env.sim
        objects, robot = sim.get_rigid_object_manager(), sim.get_agent_data(0)
        robot.grasp_mgr.desnap(True)
        for door, joints in zip(sim.art_objs, state["joints"]):  # noqa: B905  Python 3.9
            door.joint_positions = joints
        for number, (position, rotation) in zip(sim.scene_obj_ids, state["objects"]):  # noqa: B905
            thing = objects.get_object_by_id(number)
            thing.translation = magnum.Vector3(*position)
            thing.rotation = magnum.Quaternion(magnum.Vector3(*rotation[:3]), rotation[3])
        position, rotation = state["robot"]
        robot.articulated_agent.base_pos = magnum.Vector3(*position)
        robot.articulated_agent.base_rot = rotation
        if state["snapped"] is not None:
            robot.grasp_mgr.snap_to_obj(sim.scene_obj_ids[state["snapped"]])
        sim.internal_step(-1)
        sim.maybe_update_articulated_agent()


def _pose(thing: Any) -> list[list[float]]:
    """Return position (3, m) and rotation (x, y, z, w)."""
    rotation = thing.rotation
    return [
        [float(each) for each in thing.translation],
        [*(float(each) for each in rotation.vector), float(rotation.scalar)],
    ]
