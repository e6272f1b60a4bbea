"""Measures the resources of a run in each step, and their growth.

As a program, it trains the tiny model of the main job with each executor, and prints a table::

    python -m tests.faults.processes.growth [STEPS] [EXECUTOR ...]

Memory of the trainer rises in the first steps, while caches fill. The growth is the slope over the
second half of the steps.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from tests.faults.processes.catalog import children
from visenv.algos.trainer import Callback

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Resources(NamedTuple):
    """Holds the resources of a process.

    Attributes:
        memory: Resident memory in MB.
        files: Number of open files.
        threads: Number of threads.
        children: Number of child processes.
        temporary: Number of files and folders of visenv in the folder for temporary files.
    """

    memory: float
    files: int
    threads: int
    children: int
    temporary: int

    @classmethod
    def of(cls, pid: int) -> Resources:
        """Return the resources of a process of this machine."""
        process = Path(f"/proc/{pid}")
        pages = int((process / "statm").read_text().split()[1])
        return cls(
            pages * _PAGE / 1e6,
            len(list((process / "fd").iterdir())),
            len(list((process / "task").iterdir())),
            len(children(pid)),
            len(list(Path(tempfile.gettempdir()).glob("visenv-*"))),
        )


class Growth(Callback):
    """Writes the resources of this process to ``resources.jsonl`` after each step."""

    @override
    def on_step_end(self, state: Any, metrics: Mapping[str, float], groups: Any) -> None:
        with (state.folder / "resources.jsonl").open("a") as file:
            file.write(json.dumps(Resources.of(os.getpid())) + "\n")


def read_resources(folder: Path) -> list[Resources]:
    """Return the resources after each step of a run."""
    lines = (folder / "resources.jsonl").read_text().splitlines()
    return [Resources(*json.loads(line)) for line in lines]


def slopes(rows: Sequence[Resources]) -> Resources:
    """Return the growth of each resource for 100 steps, over the second half of the steps."""
    late = np.array(rows[len(rows) // 2 :], float)
    fitted = np.polyfit(np.arange(len(late)), late, 1)[0] * 100
    return Resources(*(round(float(each), 2) for each in fitted))


def _train(folder: Path, executor: str, steps: int) -> list[Resources]:
    from tests.programs import run_python

    words = [
        "-m", "visenv", "train", "zoom_tiny", "--name", executor, "--runs", folder, "--no-controls",
        "--executor", executor, "--model.options.threads", "1", "--evaluation.episodes", "4",
        "--phases.warm-up.steps", "20", "--phases.warm-up.demonstrations.episodes", "32",
        "--phases.rl.steps", str(steps), "--phases.rl.rollouts.prompts-per-step", "4",
        "--phases.rl.rollouts.num-generations", "4", "--phases.rl.saving.checkpoint-every", "100",
        "--evaluation.baselines", "--trackers",
        "--callbacks", "tests.faults.processes.growth:Growth",
    ]  # fmt: skip
    done = run_python(*words)
    if done.returncode:
        raise SystemExit(done.stderr)
    return read_resources(folder / executor / "rl")


def main(words: Sequence[str]) -> None:
    """Print a table of the resources during the steps, and of their growth."""
    steps = int(words[0]) if words else 300
    print("| executor | resource | first | after a tenth | half | end | growth in 100 steps |")
    print("|---|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for executor in words[1:] or ("inline", "threads", "processes"):
            rows = _train(Path(folder), executor, steps)
            growth = slopes(rows)
            for name in Resources._fields:
                values = [getattr(rows[place], name) for place in (0, steps // 10, steps // 2, -1)]
                shown = " | ".join(f"{value:.0f}" for value in values)
                print(
                    f"| {executor} | {name} | {shown} | {getattr(growth, name):+.2f} |", flush=True
                )


if __name__ == "__main__":
    main(sys.argv[1:])
