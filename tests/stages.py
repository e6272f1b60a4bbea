"""Runs the stages of ``make test`` in order, and prints the minutes that each one took.

The table is printed at the end, and also when a stage fails or is interrupted; then that stage is
its last row. For the tests it also has a row for each folder: the sum over its tests in all
processes.

::

    python tests/stages.py make "set-up=.venv chromium" lint pytest
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_SECONDS = Path(".pytest_cache/v/visenv/seconds")
"""The file in which `conftest.py` saves the seconds of each folder's tests."""

_PASSED, _INTERRUPTED = 0, 130

Row = tuple[str, float, str]
"""A stage, its seconds, and its result."""


def main(make: str, stages: Sequence[str]) -> int:
    """Run the stages until one fails.

    Args:
        make: The program to run them with.
        stages: Each a target of the Makefile, or ``name=targets``.

    Returns:
        The exit status of the last stage that ran.
    """
    rows: list[Row] = []
    status = _PASSED
    for stage in stages:
        name, _, targets = stage.rpartition("=")
        _SECONDS.unlink(missing_ok=True)
        started = time.monotonic()
        try:
            command = [make, "--no-print-directory", *targets.split()]
            status = subprocess.run(command, check=False).returncode
        except KeyboardInterrupt:
            status = _INTERRUPTED
        rows.append((name or targets, time.monotonic() - started, _ending(status)))
        rows += _folders()
        if status != _PASSED:
            break
    print("\n" + table(rows), flush=True)
    return status


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown, with the total of the stages."""
    total = sum(seconds for name, seconds, _ in rows if not name.startswith(" "))
    lines = [f"| {'stage':<24} | minutes |        |", f"|{'-' * 26}|--------:|--------|"]
    lines += [
        f"| {name:<24} | {seconds / 60:7.1f} | {ending:<6} |"
        for name, seconds, ending in (*rows, ("all", total, ""))
    ]
    return "\n".join(lines)


def _ending(status: int) -> str:
    return {_PASSED: "passed", _INTERRUPTED: "stopped"}.get(status, "FAILED")


def _folders() -> list[Row]:
    """Return rows for the test folders that the last stage ran, if any; the longest first."""
    if not _SECONDS.exists():
        return []
    seconds: dict[str, float] = json.loads(_SECONDS.read_text())
    return [
        (f"  {folder}", seconds[folder], "")
        for folder in sorted(seconds, key=lambda folder: -seconds[folder])
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
