"""How far players with less knowledge get in House, and one that reads the rendered ids.

    python benchmarks/house_attacks.py > benchmarks/results/2026-11-23-house_attacks.txt

The held-out split, with the limits of EmbodiedBench (30 actions, 10 invalid ones). The blind player
has all text and the goal, and may try every candidate and put wrong ones back.
"""

from __future__ import annotations

import sys

from visenv.envs.embodied.attacks import play_blind, play_sighted, play_without_feedback
from visenv.envs.embodied.source import house_sample
from visenv.envs.embodied.world.tasks import TaskOptions


def main(tasks: int = 200, sighted: int = 50) -> None:
    print(f"{'dialect':8} {'subset':18} {'blind':>6} {'no feedback':>12} {'sighted':>8}")
    for dialect in ("alfred", "habitat"):
        for subset in ("spatial", "visual_appearance"):
            options = TaskOptions(dialect, subset, "eval")
            truths = [house_sample(seed, options).ground_truth for seed in range(tasks)]
            blind = sum(play_blind(each, seed) for seed, each in enumerate(truths)) / tasks
            deaf = sum(play_without_feedback(each, 0) for each in truths) / tasks
            seen = sum(play_sighted(each, seed) for seed, each in enumerate(truths[:sighted]))
            share = seen / sighted
            print(f"{dialect:8} {subset:18} {blind:6.1%} {deaf:12.1%} {share:8.1%}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
