"""Measures players of House with less knowledge, and one that reads the rendered ids.

    python benchmarks/house_attacks.py > benchmarks/results/2026-11-23-house_attacks.txt

The tasks are those of the held-out split, with the limits of EmbodiedBench (30 actions, 10 invalid
ones). The blind player has all text and the goal, and may try every candidate and put wrong ones
back. The learned player has only the texts of the prompt (`house_text_policy.py`), and is trained
on the training split. The row of base tests whether it learned at all: any object of the right type
is right in that subset.
"""

from __future__ import annotations

import argparse

from benchmarks.house_attackers import play_blind, play_sighted, play_without_feedback
from benchmarks.house_text_policy import play, trained
from visenv.envs.embodied.ground_truth import HouseTruth
from visenv.envs.embodied.source import house_sample
from visenv.envs.embodied.world.tasks import TaskOptions

SUBSETS = ("base", "spatial", "visual_appearance")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=100, help="held-out tasks of a row")
    parser.add_argument("--sighted", type=int, default=16, help="tasks of the sighted player")
    parser.add_argument("--training", type=int, default=800, help="training tasks")
    wanted = parser.parse_args()
    print(f"{wanted.tasks} tasks a row, sighted {wanted.sighted}; learned from {wanted.training}")
    print(f"{'dialect':8} {'subset':18} {'blind':>7} {'no feedback':>12} {'learned text':>13} "
          f"{'sighted':>8}")  # fmt: skip
    first = 0  # rows have different seeds
    for dialect in ("alfred", "habitat"):
        policy = trained(dialect, SUBSETS, wanted.training)
        for subset in SUBSETS:
            options = TaskOptions(dialect, subset, "eval")
            samples = [house_sample(first + seed, options) for seed in range(wanted.tasks)]
            first += wanted.tasks
            truths = [each.truth_as(HouseTruth) for each in samples]
            deaf = sum(play_without_feedback(each, 0) for each in truths) / wanted.tasks
            learned = sum(play(policy, each) for each in samples) / wanted.tasks
            blind, sighted = f"{'-':>7}", f"{'-':>8}"  # there is only one candidate
            if subset != "base":
                won = sum(play_blind(each, seed) for seed, each in enumerate(truths))
                seen = [play_sighted(each, seed) for seed, each in
                        enumerate(truths[: wanted.sighted])]  # fmt: skip
                blind = f"{won / wanted.tasks:7.1%}"
                sighted = f"{sum(seen) / wanted.sighted:8.1%}"
            print(f"{dialect:8} {subset:18} {blind} {deaf:12.1%} {learned:13.1%} {sighted}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
