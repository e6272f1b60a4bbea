"""Starts programs in several processes with the launchers that users run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.packages import python_path

ROOT = Path(__file__).parents[3]
# The same as `accelerate launch`, which imports all commands of accelerate first (4 s).
_ACCELERATE = ["-m", "accelerate.commands.launch"]
_ACCELERATE += ["--main_process_port", "0", "--config_file"]  # any port, as tests run in parallel
_ONE = ["--num_processes", "1"]
_LAUNCHERS = {
    "alone": [],
    "replicas": ["-m", "torch.distributed.run", "--nproc_per_node", "2"],
    "ZeRO-1": [*_ACCELERATE, "tests/algos/distributed/cpu_zero1.yaml"],
    "ZeRO-2": [*_ACCELERATE, "configs/cpu_zero2.yaml"],
    "ZeRO-3": [*_ACCELERATE, "configs/cpu_zero3.yaml"],
    "ZeRO-1, one process": [*_ACCELERATE, "tests/algos/distributed/cpu_zero1.yaml", *_ONE],
    "ZeRO-2, one process": [*_ACCELERATE, "configs/cpu_zero2.yaml", *_ONE],
    "ZeRO-3, one process": [*_ACCELERATE, "configs/cpu_zero3.yaml", *_ONE],
}


def environment() -> dict[str, str]:
    """Return the environment variables of the processes."""
    return {
        **os.environ,
        **python_path(),
        "CUDA_VISIBLE_DEVICES": "",  # two processes cannot share one GPU under NCCL
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        # DeepSpeed decorates an optimizer that is not used here with torch.compile, which would
        # import the compiler in every process (2 s).
        "TORCHDYNAMO_DISABLE": "1",
    }


def start(how: str, program: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a program and return its process."""
    return subprocess.Popen(
        [sys.executable, *_LAUNCHERS[how], program, *arguments],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def launch(how: str, program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program and return its result."""
    started = start(how, program, *arguments)
    said = started.communicate()
    return subprocess.CompletedProcess(started.args, started.returncode, *said)


def require_two_who_sampled_alike(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    """Check that two processes ran `sampling.py` with the trainer's weights in their engines."""
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    for row in rows:
        assert row["episodes/aborted"] == 0
        assert row["grad_norm"] > 1e-2
        assert row["sampler/largest"] < 1e-5
    for rank in range(2):
        found = json.loads((folder / f"process-{rank}.json").read_text())
        assert found["processes"] == 2
        assert 1 not in found["groups"]  # no group of the engine, whose groups have one process
