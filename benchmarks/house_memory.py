"""Measures the memory of a process that plays oracle episodes of House without storing them.

    python benchmarks/house_memory.py > benchmarks/results/2026-11-23-house_memory.txt

The preset is the smallest one; each line is a twentieth of the run. `rollout_memory.py` measures
`visenv rollout`, which also stores the events of every episode.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym

import visenv  # noqa: F401 - registers the ids


def resident_mib() -> float:
    """Return the resident memory of this process in MiB."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def main(episodes: int = 10_000) -> None:
    env: gym.Env[Any, str] = gym.make("visenv/House-v0", preset="tiny")
    base: Any = env.unwrapped
    print("episodes  resident MiB")
    for number in range(1, episodes + 1):
        env.reset(seed=number)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(base.grammar.compose(base.oracle_turn()))
            over = terminated or truncated
        if number * 20 % episodes == 0:
            print(f"{number:8d}  {resident_mib():12.1f}", flush=True)
    env.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
