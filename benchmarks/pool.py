"""Measures steps per second of 8 episodes whose tools take 20 ms, to test how waits overlap.

    python benchmarks/pool.py

The ideal is 8 / 20 ms = 400 steps/s; 8 threads that only sleep measure how much of it the machine
reaches at the moment. The pool is used as a sampler uses it: each episode's next turn is submitted
as soon as its result is available. The baselines run alternately in the same run: Gymnasium's
SyncVectorEnv and AsyncVectorEnv (shared_memory=False) on the same environments.
"""

from __future__ import annotations

import platform
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from visenv.rollout import EpisodePool
from visenv.testing import toy

EPISODES = 8
LATENCY = 0.020
TURNS = 25
ROUNDS = 5
IDEAL = EPISODES / LATENCY
CALL = "<think>add</think><tool>\nname: add\namount: 1\n</tool>"


def of_pool(pool: EpisodePool) -> Callable[[], float]:
    def speed() -> float:
        pool.reset(seed=[0] * EPISODES)
        left = dict.fromkeys(range(EPISODES), TURNS)
        start = time.perf_counter()
        pool.submit(dict.fromkeys(left, CALL))
        while left:
            for index in pool.ready():
                left[index] -= 1
                if left[index]:
                    pool.submit({index: CALL})
                else:
                    del left[index]
        return EPISODES * TURNS / (time.perf_counter() - start)

    return speed


def of_stock(envs: gym.vector.VectorEnv[Any, Any, Any]) -> Callable[[], float]:
    def speed() -> float:
        envs.reset(seed=0)
        start = time.perf_counter()
        for _ in range(TURNS):
            envs.step((CALL,) * EPISODES)
        return EPISODES * TURNS / (time.perf_counter() - start)

    return speed


def of_sleep() -> float:
    def sleep() -> None:
        for _ in range(TURNS):
            time.sleep(LATENCY)

    threads = [threading.Thread(target=sleep) for _ in range(EPISODES)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return EPISODES * TURNS / (time.perf_counter() - start)


def make(**how: Any) -> Any:
    # One turn more than is played: no episode ends, so that no baseline spends a step on a reset.
    return gym.make_vec(toy.register(), num_envs=EPISODES, latency=LATENCY, turns=TURNS + 1, **how)


def main() -> None:
    stock = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    vectors = {
        "pool, threads": make(),
        "pool, processes": make(workers="process"),
        "gymnasium sync": make(vectorization_mode="sync", vector_kwargs=stock),
        "gymnasium async": make(
            vectorization_mode="async", vector_kwargs={**stock, "shared_memory": False}
        ),
    }
    speeds = {
        name: (of_pool if isinstance(each, EpisodePool) else of_stock)(each)
        for name, each in vectors.items()
    }
    speeds["bare sleep"] = of_sleep
    measured = [{name: speed() for name, speed in speeds.items()} for _ in range(ROUNDS + 1)][1:]
    for each in vectors.values():
        each.close()
    print(f"python {platform.python_version()}, gymnasium {gym.__version__}, ideal {IDEAL:.0f}")
    for name in speeds:
        middle = statistics.median(each[name] for each in measured)
        ratio = statistics.median(each["pool, threads"] / each[name] for each in measured)
        print(
            f"  {name:16} {middle:6.1f} steps/s = {middle / IDEAL:6.1%} of ideal   "
            f"pool, threads / {name} = {ratio:.2f}"
        )


if __name__ == "__main__":
    main()
