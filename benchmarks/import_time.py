"""Checks that `import visenv` takes at most twice the time of `import gymnasium`.

    python benchmarks/import_time.py

Each import runs in new interpreters, alternating between both, so that other load affects both; the
medians are compared.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass

import tyro


@dataclass(frozen=True)
class Args:
    """Sets the options of the measurement."""

    runs: int = 15
    """Number of interpreters that are started for each import."""
    bound: float = 2.0
    """Largest accepted ratio."""


def seconds(module: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(args: Args) -> int:
    pair = ("gymnasium", "visenv")
    for module in pair:
        seconds(module)  # the first import compiles and fills the disk cache
    rounds = [[seconds(module) for module in pair] for _ in range(args.runs)]
    base, ours = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"import gymnasium  {base * 1000:7.1f} ms (median of {args.runs})")
    print(f"import visenv     {ours * 1000:7.1f} ms")
    print(f"ratio             {ours / base:7.2f} (at most {args.bound})")
    return int(ours > args.bound * base)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Args)))
