"""Counts the different questions and instructions of the procedural ARM worlds.

python benchmarks/arm_variety.py [seeds]
"""

from __future__ import annotations

import sys
from collections import Counter
from unittest.mock import patch

import numpy as np

from visenv.envs.arm.world.constraints import ConstraintWorld
from visenv.envs.arm.world.judged_scenes import JudgedScenes
from visenv.worlds.scenes import ScenesWorld


def questions(seeds: int) -> int:
    """Return the number of different questions of ArmZoom for these seeds.

    The images stay blank.
    """
    world, blank = JudgedScenes(), np.zeros((8, 8, 3), np.uint8)
    # Not through the cache of scenes, because the blank images would stay in it.
    with patch.multiple(ScenesWorld, _paint=lambda *_: blank, sample=ScenesWorld._make):
        return len({world.sample(np.random.default_rng(seed)).question for seed in range(seeds)})


def instructions(seeds: int) -> tuple[int, float]:
    """Return the number of different instructions of ArmIF, and the share that has an image."""
    world = ConstraintWorld()
    drawn = [world.sample(np.random.default_rng(seed)) for seed in range(seeds)]
    counts = Counter(sample.question for sample in drawn)
    return len(counts), sum(bool(sample.images) for sample in drawn) / seeds


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(f"ArmZoom: {questions(number)} questions in {number} seeds")
    different, share = instructions(number)
    print(f"ArmIF: {different} instructions in {number} seeds, {share:.0%} with an image")
