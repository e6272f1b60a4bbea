"""Measures the peak memory of `visenv rollout` for a number of episodes; it must not grow.

::

    python benchmarks/rollout_memory.py --episodes 200

The command runs in a separate process. The table shows the written episodes and the resident memory
of that process at each tenth of the run, and at the end the peak that the kernel recorded. If
memory grows with the number of episodes, the column increases to its end.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from benchmarks.memory import memory_mib

RUN = "import sys; from visenv.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class RolloutMemory:
    """Measure the peak memory of `visenv rollout`."""

    env: str = "ZoomVQA-v0"
    """The environment, with its default options."""
    episodes: int = 200
    """Number of episodes."""
    policy: str = "oracle"
    """The policy, which runs in the measured process."""
    option: list[str] = field(default_factory=list)
    """Options of the environment."""

    def run(self) -> None:
        """Play, and print the table."""
        with tempfile.TemporaryDirectory() as folder:
            options = [word for option in self.option for word in ("--option", option)]
            words = ["rollout", self.env, "--policy", self.policy, *options]
            words += ["--groups", str(self.episodes), "--out", folder + "/run"]
            command = [sys.executable, "-c", RUN, *words]
            start = time.monotonic()
            with subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as process:
                peak = _watch(process, Path(folder) / "run" / "episodes.jsonl", self.episodes)
            seconds = time.monotonic() - start
        if process.returncode:
            sys.exit(f"visenv {' '.join(words)} failed with status {process.returncode}")
        print(f"{self.env}, {self.policy}: {self.episodes} episodes in {seconds:.0f} s")
        print(f"peak resident memory: {peak:.0f} MiB")


def _watch(process: subprocess.Popen[bytes], file: Path, episodes: int) -> float:
    """Print the memory of the process at each tenth; return its peak in MiB."""
    print("episodes  resident MiB")
    peak, written, offset, due = 0.0, 0, 0, 1
    while process.poll() is None:
        if file.exists():
            with file.open("rb") as opened:
                opened.seek(offset)
                new = opened.read()
            offset, written = offset + len(new), written + new.count(b"\n")
        with contextlib.suppress(OSError, LookupError):  # the process has just ended
            peak = memory_mib("VmHWM", process.pid)
            if written * 10 >= due * episodes:
                print(f"{written:8d}  {memory_mib(pid=process.pid):12.0f}", flush=True)
                due = written * 10 // episodes + 1
        time.sleep(0.05)
    return peak


if __name__ == "__main__":
    tyro.cli(RolloutMemory).run()
