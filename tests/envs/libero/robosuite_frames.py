"""Plays LIBERO's own environment and stores robosuite's raw observations.

`raw_observations` runs this file in the interpreter of the simulators. It uses no code of visenv
except the choice of the OpenGL backend, so that the observations are an independent reference.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

PEER = Path(__file__).parents[3] / "benchmarks/peer_libero.py"
"""The script whose `prepare` configures LIBERO without visenv."""

SETTLING = 10
EVERY = 8
"""Number of actions between two observations that are requested again."""


def raw_observations(
    interpreter: str, suite: str, task: int, side: int, actions: list[list[float]], folder: Path
) -> dict[str, Any]:
    """Return robosuite's observations before each action and after the last one.

    Args:
        interpreter: The Python with LIBERO.
        suite: The suite of the task, which starts at its first stored state.
        task: The index of the task.
        side: Side of the frames in pixels.
        actions: The actions after the settling steps.
        folder: A folder for files.

    Returns:
        ``agentview`` and ``wrist`` (uint8 ``[observations, side, side, 3]``, lowest row first),
        ``state`` (``[observations, 8]``), the same with the prefix ``stepped_``, ``start`` (the
        flattened state of MuJoCo) and ``language``. The arrays with the prefix are the observations
        that `step` returns, which have the poses before its last physics step of 2 ms. Each
        observation whose index is a multiple of `EVERY` was requested again after the poses were
        computed; the others are equal in both.
    """
    import visenv.simulators

    file = folder / "raw.npz"
    request = {"suite": suite, "task": task, "side": side, "actions": actions, "file": str(file)}
    command = [interpreter, __file__, str(Path(visenv.simulators.__file__).parent)]
    done = subprocess.run(
        command, input=json.dumps(request), text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with np.load(file) as found:
        return dict(found)


def _facts(observation: dict[str, Any]) -> dict[str, Any]:
    """Return the frames and the state of an observation, with copies of its arrays."""
    from robosuite.utils.transform_utils import quat2axisangle

    hand, rotation = observation["robot0_eef_pos"], observation["robot0_eef_quat"]
    fingers = observation["robot0_gripper_qpos"]
    return {
        "agentview": np.array(observation["agentview_image"]),
        "wrist": np.array(observation["robot0_eye_in_hand_image"]),
        "state": np.concatenate([hand, quat2axisangle(np.array(rotation)), fingers]),
    }


def main(simulators: str) -> None:
    """Play the actions of the request on the standard input."""
    request = json.loads(sys.stdin.read())
    prepare = runpy.run_path(str(PEER))["prepare"]
    prepare(simulators)
    import torch
    from libero.libero import get_libero_path
    from libero.libero.benchmark import get_benchmark
    from libero.libero.envs import OffScreenRenderEnv

    suite = get_benchmark(request["suite"])()
    task = suite.tasks[request["task"]]
    path = Path(get_libero_path("init_states"), task.problem_folder, task.init_states_file)
    states = torch.load(path, weights_only=False)
    side = request["side"]
    env = OffScreenRenderEnv(
        bddl_file_name=suite.get_task_bddl_file_path(request["task"]),
        camera_heights=side,
        camera_widths=side,
    )
    env.seed(0)
    env.reset()
    env.set_init_state(states[0])
    rows: list[dict[str, Any]] = []

    def look(stepped: dict[str, Any]) -> None:
        before = {f"stepped_{name}": value for name, value in _facts(stepped).items()}
        seen = stepped
        if len(rows) % EVERY == 0:
            env.sim.forward()
            seen = env.env._get_observations(force_update=True)
        rows.append(_facts(seen) | before)

    for _ in range(SETTLING):
        stepped = env.step([0.0] * 6 + [-1.0])[0]
    look(stepped)
    for action in request["actions"]:
        look(env.step(action)[0])
    arrays: dict[str, Any] = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    np.savez(
        request["file"],
        **arrays,
        start=np.asarray(states[0]),
        language=np.array(task.language),
    )


if __name__ == "__main__":
    main(sys.argv[1])
