"""Measures the memory of a process that plays oracle episodes and keeps none.

    python benchmarks/env_memory.py House-v0 --option preset=tiny
    python benchmarks/env_memory.py MagsZoom-v0 --option preset=tiny magnifier=small --seeds 50

The table has a line for each twentieth of the run. `rollout_memory.py` measures `visenv rollout`,
which also keeps the events of every episode.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from benchmarks.memory import memory_mib
from visenv.makers import env_maker


@dataclass(frozen=True)
class EnvMemory:
    """Measure the resident memory of a process that plays episodes.

    Attributes:
        env: The environment, without ``visenv/``.
        episodes: The number of episodes.
        option: Options of the environment, as ``key=value``.
        seeds: The number of different seeds, which are played in turn; a few fill the caches early.
    """

    env: Annotated[str, tyro.conf.Positional]
    episodes: int = 10_000
    option: list[str] = field(default_factory=list)
    seeds: int | None = None


def main(chosen: EnvMemory) -> None:
    env = env_maker(chosen.env, chosen.option)()
    base: Any = env.unwrapped
    print("episodes  resident MiB")
    for number in range(1, chosen.episodes + 1):
        env.reset(seed=number % (chosen.seeds or chosen.episodes))
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(base.grammar.compose(base.oracle_turn()))
            over = terminated or truncated
        if number * 20 % chosen.episodes == 0:
            gc.collect()
            print(f"{number:8d}  {memory_mib():12.1f}", flush=True)
    env.close()


if __name__ == "__main__":
    main(tyro.cli(EnvMemory))
