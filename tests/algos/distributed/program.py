"""Runs test tasks under `accelerate launch`.

Arguments: a folder for runs, the folder of a real model or "", and tasks. A task ``visenv ...`` is
a command.
"""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import torch

from visenv.algos.trainer.distributed import DistributedContext

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.algos import toy
from tests.algos.distributed.gradients import check
from tests.algos.distributed.training import (
    StopAfterTheFirst,
    die_while_saving_the_second,
    train,
    train_flat,
    train_long,
)
from visenv.algos.sft import play_demonstrations
from visenv.cli import main as run_command


def main() -> None:
    torch.set_num_threads(1)
    folder, model = Path(sys.argv[1]), sys.argv[2]
    for task in sys.argv[3:]:
        if task in ("check", "check toy"):
            processes = DistributedContext(timeout=600)
            assert processes.count == 2
            check(model if task == "check" else "", processes)
        elif task == "demonstrations":
            check_demonstrations(DistributedContext(timeout=600))
        elif task.startswith("visenv "):
            if status := run_command(shlex.split(task)[1:]):
                sys.exit(status)
        elif task == "hang":
            processes = DistributedContext(timeout=3)
            if processes.first:
                processes.wait()
            time.sleep(800)  # until the launcher kills it
        elif task == "bf16":
            from tests.algos.distributed.bf16 import check_bf16

            check_bf16(model, folder / task)
        elif task == "shards":
            from tests.algos.distributed.sharding import check_shards

            check_shards(model, folder / task)
        elif task == "long":
            train_long(folder / task)
        elif task == "flat":
            train_flat(folder / task)
        else:
            run(model, folder, task)


def run(model: str, folder: Path, task: str) -> None:
    """Train a run by its name, only its first step, or its remaining steps."""
    if task == "killed":
        die_while_saving_the_second()
    words = ["killed"] if task == "resume" else task.split()
    begins, resumes = task.startswith("begin "), task.startswith(("resume", "go on with "))
    train(model, folder / words[-1], resumes, [StopAfterTheFirst()] if begins else [])


def check_demonstrations(processes: DistributedContext) -> None:
    """Compare demonstrations that two processes play together with those of one process."""
    policy, player = toy.ToyPolicy(), toy.ToyPolicy(seed=1)
    seeds = range(7)
    shared = play_demonstrations(policy, player, toy.Echo, seeds, processes=processes)
    assert shared == play_demonstrations(policy, player, toy.Echo, seeds)
    assert [episode.seed for episode in shared] == [*seeds]
    assert all(image.pixels.size for episode in shared for image in episode.images)
    print(f"{processes.rank}: demonstrations agree", flush=True)


if __name__ == "__main__":
    main()
