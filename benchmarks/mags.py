"""Measures MagsZoom: cost of a step, scenes per second, and the memory of 128 environments.

    python benchmarks/mags.py

- A step with interpolated crops against Pillow's crop and resize of the same boxes alone, and
  against a step that shows the crops at native size: medians of alternating rounds. Target: 1.15
  times the bare crop and resize.
- Scenes of 768 px in a second on one core, for each difficulty: at least 8.
- 128 environments hold one network: memory that each environment adds.

`env_memory.py MagsZoom-v0 --option preset=tiny magnifier=small --seeds 50` measures the memory over
many episodes.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import statistics
import time
from typing import Any

import cv2
import gymnasium as gym
import numpy as np
import PIL.Image

import visenv  # noqa: F401 - registers the environments
from benchmarks.memory import memory_mib
from visenv.envs.mags.magnifier.magnify import NetworkMagnifier
from visenv.envs.mags.world import SCENES, MagsWorld
from visenv.scorers.services import resolve

TURN = "<think>a<zoom>[[10, 10, 60, 60], [100, 20, 140, 70], [150, 150, 200, 210]]</zoom></think>"
ROUNDS, STEPS = 9, 40


def main() -> None:
    cv2.setNumThreads(1)
    steps()
    scenes()
    environments()


def made(**options: Any) -> gym.Env[Any, Any]:
    return gym.make("visenv/MagsZoom-v0", **options)


def steps() -> None:
    kinds = ("none", "resize", "lanczos")
    envs = {kind: made(magnifier=kind, preset="stage1") for kind in kinds}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(ROUNDS):
        for kind, env in envs.items():
            spent = 0.0
            for _ in range(STEPS):
                env.reset(seed=turn)
                start = time.process_time()
                env.step(TURN)
                spent += time.process_time() - start
            times[kind].append(spent / STEPS)
    bare = statistics.median(times["none"])
    print("a step with three boxes")
    pillow = statistics.median(bare_lanczos() for _ in range(ROUNDS))
    print(f"  Pillow   {pillow * 1000:.2f} ms   crop and resize by Lanczos alone")
    for kind, each in times.items():
        own = statistics.median(each)
        print(
            f"  {kind:<8} {own * 1000:.2f} ms   {own / pillow:.2f} times Pillow alone, "
            f"{own / bare:.2f} times a step with crops of native size"
        )


def bare_lanczos() -> float:
    """Return the seconds of Pillow for the boxes of `TURN` in a scene of 768 px, seen at 256 px."""
    picture = PIL.Image.fromarray(np.zeros((768, 768, 3), np.uint8))
    start = time.process_time()
    for _ in range(STEPS):
        for left, top, right, bottom in (
            (10, 10, 60, 60),
            (100, 20, 140, 70),
            (150, 150, 200, 210),
        ):
            crop = picture.crop((3 * left, 3 * top, 3 * right, 3 * bottom))
            size = (4 * crop.width, 4 * crop.height)
            np.asarray(crop.resize(size, PIL.Image.Resampling.LANCZOS))
    return (time.process_time() - start) / STEPS


def scenes() -> None:
    print("scenes in a second, one core (target 8)")
    for name in SCENES:
        world = MagsWorld(name)
        times = []
        for seed in range(12):
            start = time.process_time()
            world.pair(np.random.default_rng(seed))
            times.append(time.process_time() - start)
        print(f"  {name:<13} {1 / statistics.median(times):.1f}")


def environments() -> None:
    first = made(preset="tiny-stage1")
    first.reset(seed=0)
    first.step(TURN)
    before = memory_mib()
    envs = [made(preset="tiny-stage1") for _ in range(128)]
    for env in envs:
        env.reset(seed=0)
        env.step("<think>a<zoom>[[10, 10, 60, 60]]</zoom></think>")
    networks = {id(resolve(network_of(env).scorer)) for env in envs}
    added = (memory_mib() - before) / len(envs)
    print(f"128 environments: {len(networks)} network, {added:.2f} MiB added by each")


def network_of(env: gym.Env[Any, Any]) -> NetworkMagnifier:
    base: Any = env.unwrapped
    network = base.tools["zoom"].magnifier
    assert isinstance(network, NetworkMagnifier)
    return network


if __name__ == "__main__":
    main()
