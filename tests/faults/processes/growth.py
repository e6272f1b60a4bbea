"""Measures the resources of a run in each step, and their growth.

As a program, it trains the tiny model of the main job with each executor, and prints a table::

    python -m tests.faults.processes.growth [STEPS] [EXECUTOR ...]

Memory of the trainer rises in the first steps, while caches fill. The growth is the slope over the
second half of the steps. The caches of patches and of features of images have 8 MB each instead of
1 GiB, because they would take a thousand steps to fill.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from tests.faults.processes.faulty_echo import children
from visenv.algos.trainer import Callback

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Resources(NamedTuple):
    """Holds the resources of a process.

    Attributes:
        memory: Resident memory in MB. It contains memory that was freed, so it rises and falls.
        allocated: Memory in MB that was allocated by this process and is not freed.
        files: Number of open files.
        threads: Number of threads.
        children: Number of child processes.
        temporary: Number of files and folders of visenv in the folder for temporary files.
    """

    memory: float
    allocated: float
    files: int
    threads: int
    children: int
    temporary: int

    @classmethod
    def of_this_process(cls) -> Resources:
        """Return the resources of this process."""
        pid = os.getpid()
        process = Path(f"/proc/{pid}")
        pages = int((process / "statm").read_text().split()[1])
        return cls(
            pages * _PAGE / 1e6,
            _allocated() / 1e6,
            len(list((process / "fd").iterdir())),
            len(list((process / "task").iterdir())),
            len(children(pid)),
            len(list(Path(tempfile.gettempdir()).glob("visenv-*"))),
        )


class _Mallinfo(ctypes.Structure):
    """Holds the statistics of glibc's `mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _allocated() -> int:
    """Return the bytes that glibc has allocated and that are not freed; 0 with another library."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return 0
    mallinfo.restype = _Mallinfo
    found = mallinfo()
    return int(found.uordblks + found.hblkhd)


class Growth(Callback):
    """Writes the resources of this process to ``resources.jsonl`` after each step."""

    @override
    def on_step_end(self, state: Any, metrics: Mapping[str, float], groups: Any) -> None:
        with (state.folder / "resources.jsonl").open("a") as file:
            file.write(json.dumps(Resources.of_this_process()) + "\n")


def read_resources(folder: Path) -> list[Resources]:
    """Return the resources after each step of a run."""
    lines = (folder / "resources.jsonl").read_text().splitlines()
    return [Resources(*json.loads(line)) for line in lines]


def slopes(rows: Sequence[Resources]) -> dict[str, float]:
    """Return the growth of each resource for 100 steps, over the second half of the steps."""
    late = np.array(rows[len(rows) // 2 :], float)
    fitted = np.polyfit(np.arange(len(late)), late, 1)[0] * 100
    return dict(zip(Resources._fields, map(float, fitted), strict=True))


def measure(folder: Path, executor: str, steps: int) -> Measured:
    """Train the tiny model with an executor.

    Args:
        folder: An empty folder.
        executor: The name of an executor.
        steps: The number of RL steps.

    Raises:
        RuntimeError: If the run fails.
    """
    from tests.programs import run_python

    words: list[str | Path] = [
        "-m", "visenv", "train", "zoom_tiny", "--name", executor, "--runs", folder, "--no-controls",
        "--executor", executor, "--num-processes", "1",
        "--model.options.vision_cache", str(1 << 23), "--evaluation.episodes", "4",
        "--phases.warm-up.steps", "20", "--phases.warm-up.demonstrations.episodes", "32",
        "--phases.rl.steps", str(steps), "--phases.rl.rollouts.prompts-per-step", "4",
        "--phases.rl.rollouts.num-generations", "4", "--phases.rl.saving.checkpoint-every", "100",
        "--evaluation.baselines", "--trackers",
        "--callbacks", "tests.faults.processes.growth:Growth",
    ]  # fmt: skip
    temporary = folder / "tmp"
    temporary.mkdir()
    done = run_python(*words, env={"TMPDIR": str(temporary)})
    if done.returncode:
        raise RuntimeError(done.stderr)
    left = [path.name for path in temporary.iterdir() if path.name.startswith("visenv-")]
    return Measured(
        read_resources(folder / executor / "rl"), left, _with_variable("TMPDIR", str(temporary))
    )


class Measured(NamedTuple):
    """Holds the resources of a run.

    Attributes:
        rows: The resources after each step.
        files: Names of temporary files and folders that are left after the end.
        processes: Processes that are left after the end.
    """

    rows: list[Resources]
    files: list[str]
    processes: list[int]


def _with_variable(name: str, value: str) -> list[int]:
    """Return the processes that were started with a variable of the environment."""
    wanted = f"{name}={value}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # the process has ended
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def table(executor: str, measured: Measured) -> list[str]:
    """Return a row for each resource, in Markdown, and a sentence about the end of the run."""
    rows, growth = measured.rows, slopes(measured.rows)
    places = (0, len(rows) // 10, len(rows) // 2, -1)
    lines = []
    for name in Resources._fields:
        shown = " | ".join(f"{getattr(rows[place], name):.0f}" for place in places)
        lines.append(f"| {executor} | {name} | {shown} | {growth[name]:+.2f} |")
    return [*lines, f"| {executor} | left | | | | {len(measured.files + measured.processes)} | |"]


def main(words: Sequence[str]) -> None:
    """Print a table of the resources during the steps, and of their growth."""
    steps = int(words[0]) if words else 300
    print("| executor | resource | first | after a tenth | half | end | growth in 100 steps |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for executor in words[1:] or ("inline", "threads", "processes"):
        with tempfile.TemporaryDirectory() as folder:
            print(*table(executor, measure(Path(folder), executor, steps)), sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
