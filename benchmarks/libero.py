"""Measures Libero: a turn of 16 actions and a reset against LIBERO's own environment, and a call.

    python benchmarks/libero.py
    python benchmarks/libero.py --episodes 1000 --kills 200
    pip install --no-deps --target <folder> torchrl tensordict pyvers cloudpickle importlib_metadata
    python benchmarks/libero.py --torchrl <folder>

- A turn of 16 actions with two frames of 224 px at its end, against LIBERO's `OffScreenRenderEnv`
  with both cameras, which draws after each action (as LeRobot and openpi run it), and against
  TorchRL's `LiberoEnv`. Target: at least 5 times.
- A repeated reset without frames, against a reset of the peers to a stored initial state. Target:
  at least 50 times.
- A chunk of 16 actions with `NativeActions` against the same chunk as text, CPU time of both
  processes. Target: at most 1.2 times. 16 single actions, which render 16 times, for comparison.
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
import numpy as np
import tyro

import visenv
from visenv.envs.libero import Libero, NativeActions
from visenv.envs.libero.actions import decode
from visenv.envs.libero.presets import SETTLING_STEPS
from visenv.envs.libero.tools import TARGET
from visenv.simulators.host import ChildHost
from visenv.simulators.settings import SimulatorSpec, find_interpreter

FRAMES = {"side": 224, "cameras": ["agentview", "wrist"], "turned": False}
TASK = {
    "world": {"suite": "libero_goal", "task": 0, "seed": 0},
    "init": 0,
    "settle": SETTLING_STEPS,
}
ACTIONS = [[0.1, 0.1, -0.1, 0.0, 0.0, 0.0, -1.0]] * 16
ROUNDS = 5


@dataclass(frozen=True)
class Options:
    """Measure the environment.

    Attributes:
        episodes: Episodes of the memory test.
        kills: Simulators that are killed.
        torchrl: A folder in which torchrl and its dependencies are installed; empty to skip it.
    """

    episodes: int = 0
    kills: int = 0
    torchrl: str = ""


def main(options: Options) -> None:
    host = ChildHost(SimulatorSpec.of(TARGET, {"assets": ""}, interpreter=find_interpreter()))
    host.start()
    host.reset(TASK, frames=FRAMES)
    print(f"memory of a simulator with one task: {host.memory_bytes() / 2**20:.0f} MiB")
    peers = measure_peers(options.torchrl)
    turn = cpu_seconds(host, lambda: host.act({"actions": ACTIONS}, frames=FRAMES))
    report("16 actions and two frames", turn, peers, "turn", 5)
    reset = cpu_seconds(host, lambda: [host.reset(TASK) for _ in range(20)]) / 20
    report("repeated reset", reset, peers, "reset", 50)
    host.close()
    native()
    call()
    if options.episodes:
        memory(options.episodes)
    if options.kills:
        kills(options.kills)


def measure_peers(torchrl: str) -> dict[str, dict[str, float]]:
    """Return the CPU seconds of a turn and of a reset of each peer."""
    script = str(Path(__file__).with_name("peer_libero.py"))
    folder = str(Path(visenv.__file__).parent / "simulators")
    command = [find_interpreter(), script, folder, json.dumps(ACTIONS), torchrl]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(
    what: str, ours: float, peers: dict[str, dict[str, float]], part: str, target: int
) -> None:
    """Print our CPU time and the ratio of each peer's."""
    print(f"{what}: {1000 * ours:.1f} ms of CPU (target: {target} times)")
    for name, each in peers.items():
        print(f"  {name}: {1000 * each[part]:.0f} ms, {each[part] / ours:.1f} times")


def native() -> None:
    """Print the CPU time of 16 actions as text, as a chunk of numbers and as single actions."""
    options: dict[str, Any] = {"data": "libero_goal", "tasks": [0], "states": 1, "env_steps": 10**6}
    text = gym.make("visenv/Libero-v0", **options, turns=10**6)
    numbers = NativeActions(gym.make("visenv/Libero-v0", **options, actions="native"))
    rows = [[140, 140, 114, 127, 127, 127, 0]] * 16  # the bins that are nearest to `ACTIONS`
    turn, chunk = json.dumps({"actions": rows}), np.array(decode(rows))
    text.reset(seed=0)
    numbers.reset(seed=0)
    works: list[tuple[str, gym.Env[Any, Any], Callable[[], Any]]] = [
        ("text", text, lambda: text.step(turn)),
        ("NativeActions, a chunk", numbers, lambda: numbers.step(chunk)),
        ("NativeActions, 16 single actions", numbers, lambda: [numbers.step(row) for row in chunk]),
    ]
    seconds = []
    for name, env, work in works:
        base = env.unwrapped
        assert isinstance(base, Libero)
        host = base.act.session.host
        assert isinstance(host, ChildHost)
        seconds.append(cpu_seconds(host, work, own=True))
        times = seconds[-1] / seconds[0]
        print(f"16 actions, {name}: {1000 * seconds[-1]:.0f} ms of CPU, {times:.2f} times")
    text.close()
    numbers.close()


def cpu_seconds(host: ChildHost, work: Callable[[], Any], own: bool = False) -> float:
    """Return the median CPU time of the child for `work`, with that of this process if `own`."""
    times = []
    for _ in range(ROUNDS):
        begun = used(host.pid) + own * time.process_time()
        work()
        times.append(used(host.pid) + own * time.process_time() - begun)
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
