"""Counts for Libero: every task loads, resets are equal bit for bit, the scripted expert solves.

    python benchmarks/libero_counts.py                    # all three parts, about an hour
    python benchmarks/libero_counts.py --parts expert --solved envs/libero/datasets/solved.json

``load`` builds all 130 tasks and takes one step. ``resets`` compares 20 tasks at 3 states in a new
simulator with the same states after other episodes: state, frames and 10 steps. ``expert`` plays
the scripted expert, by text actions, at the first 10 states of libero_object and the first 5 of
libero_goal and libero_spatial; ``--solved`` writes the solved ones to a file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from visenv.envs.libero.datasets.tasks import task_names
from visenv.envs.libero.presets import SETTLING_STEPS, STEP_LIMITS, SUITES
from visenv.envs.libero.tools import PLANNED_STEPS, TARGET
from visenv.simulators.host import SimulatorHost
from visenv.simulators.pool import SimulatorPool
from visenv.simulators.settings import HostLimits, SimulatorSpec

FRAMES = {"side": 224, "cameras": ["agentview", "wrist"], "turned": False}
PARTS = ("load", "resets", "expert")
EXPERT_SUITES = ("libero_object", "libero_goal", "libero_spatial")
EXPERT_STATES = {"libero_object": 10, "libero_goal": 5, "libero_spatial": 5}
SPEC = SimulatorSpec.of(TARGET, {"assets": ""}, limits=HostLimits(call_s=600))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--solved", type=Path)
    words = parser.parse_args()
    pool = SimulatorPool()
    try:
        for part in words.parts:
            begun = time.monotonic()
            if part == "load":
                load(pool)
            elif part == "resets":
                resets(pool)
            else:
                expert(pool, words.solved)
            print(f"{part}: {(time.monotonic() - begun) / 60:.1f} min", flush=True)
    finally:
        pool.close()


def task(suite: str, number: int, state: int) -> dict[str, Any]:
    world = {"suite": suite, "task": number, "seed": 0}
    return {"world": world, "init": state, "settle": SETTLING_STEPS}


def load(pool: SimulatorPool) -> None:
    failed = []
    every = [(suite, number) for suite in SUITES for number in range(len(task_names(suite)))]
    for suite, number in every:
        host = pool.borrow(SPEC, {})
        found = host.reset(task(suite, number, 0)).facts
        acted = host.act({"actions": [[0.1] * 6 + [-1.0]]}).facts
        whole = found["initial_states"] == 50 and acted["taken"] == 1 and not found["success"]
        failed += [] if whole else [(suite, number)]
        pool.give_back(host)
    print(f"tasks that load and step: {len(every) - len(failed)} of {len(every)}; failed: {failed}")


def resets(pool: SimulatorPool) -> None:
    equal = 0
    tasks = [(suite, number) for suite in SUITES for number in (0, 3, 6, 9)]
    for suite, number in tasks:
        for state in (0, 7, 23):
            wanted = task(suite, number, state)
            fresh = SimulatorPool()
            used = pool.borrow(SPEC, wanted)
            new = fresh.borrow(SPEC, wanted)
            used.reset(task(suite, number, 41), frames=FRAMES)
            used.act({"actions": [[0.3, -0.2, -0.5, 0, 0.1, 0, 1.0]] * 12})
            equal += list(course(used, wanted)) == list(course(new, wanted))
            pool.give_back(used)
            fresh.give_back(new)
            fresh.close()
    print(f"resets equal to a fresh simulator, bit for bit: {equal} of {3 * len(tasks)}")


def course(host: SimulatorHost, wanted: dict[str, Any]) -> Iterator[Any]:
    """Yield state, snapshot and frames at the start and after ten actions."""
    begun = host.reset(wanted, frames=FRAMES)
    yield begun.facts
    yield [frame.tobytes() for frame in begun.frames.values()]
    rows = np.random.default_rng(0).uniform(-1, 1, (10, 7)).tolist()
    acted = host.act({"actions": rows}, frames=FRAMES, snapshot=True)
    yield acted.facts
    yield acted.snapshot
    yield [frame.tobytes() for frame in acted.frames.values()]


def expert(pool: SimulatorPool, solved: Path | None) -> None:
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for suite in EXPERT_SUITES:
        for number, name in enumerate(task_names(suite)):
            host = pool.borrow(SPEC, task(suite, number, 0))
            for state in range(EXPERT_STATES[suite]):
                if is_solved(host, suite, number, state):
                    found[suite][str(number)].append(state)
            pool.give_back(host)
            solved_here = len(found[suite][str(number)])
            print(f"{suite} {number} {name}: {solved_here} of {EXPERT_STATES[suite]}")
        count = sum(map(len, found[suite].values()))
        print(f"{suite}: {count} of {EXPERT_STATES[suite] * len(task_names(suite))}", flush=True)
    if solved is not None:
        kept = {
            suite: {number: states for number, states in tasks.items() if states}
            for suite, tasks in found.items()
        }
        solved.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def is_solved(host: SimulatorHost, suite: str, number: int, state: int) -> bool:
    steps, limit, facts = 0, STEP_LIMITS[suite], {"success": False}
    host.reset(task(suite, number, state))
    while steps < limit and not facts["success"]:
        facts = host.act({"expert": min(PLANNED_STEPS, limit - steps)}).facts
        steps += facts["taken"]
    return bool(facts["success"])


if __name__ == "__main__":
    main()
