"""Finds files and rows that a run's folder should contain, and files that have changed.

A file that was deleted leaves no trace by itself. The other files of the run therefore serve as
evidence: `recipe.json` and `results.json` belong together, and the newest checkpoint of a phase
contains a copy of its metrics and the sizes of its saved episodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from visenv.decoding.files import read_lines
from visenv.viewer.facts import read_file

_NAME = re.compile(r"step_[0-9]{6,12}\.jsonl")
"""The names of files of episodes in a phase's folder."""


def check_settings(folder: Path, problems: list[str]) -> None:
    """Append a problem if the settings or the results of a training run are missing.

    Args:
        folder: The run's folder.
        problems: The list of problems.
    """
    recipe, results = folder / "recipe.json", folder / "results.json"
    found = read_file(results, [])  # its problems are listed already
    if isinstance(found, dict) and "scores" in found and not recipe.exists():
        problems.append(f"{recipe} is missing: the settings of the run are not known")
    # The first scores are measured before the first phase.
    if recipe.exists() and not results.exists() and any(folder.glob("*/metrics.jsonl")):
        problems.append(f"{results} is missing: the scores of the run are not known")


def check_steps(folder: Path, metrics: Iterable[Mapping[str, Any]], problems: list[str]) -> None:
    """Append a problem for each finished phase whose metrics lack steps.

    Args:
        folder: The run's folder.
        metrics: The rows of the metrics, each with its ``phase``.
        problems: The list of problems.
    """
    results = read_file(folder / "results.json", [])  # its problems are listed already
    steps = results.get("steps") if isinstance(results, dict) else None
    found: dict[str, set[Any]] = {}
    for row in metrics:
        found.setdefault(row["phase"], set()).add(row.get("step"))
    for name, count in steps.items() if isinstance(steps, dict) else ():
        if not isinstance(count, int) or isinstance(count, bool):
            continue
        there = sum(isinstance(step, int) and 1 <= step <= count for step in found.get(name, ()))
        if there < count:
            path = folder / name / "metrics.jsonl"
            problems.append(f"{path} has no metrics of {count - there} of {count} steps")


def check_phases(folder: Path, problems: list[str]) -> None:
    """Compare the metrics and the saved episodes of each phase with its newest checkpoint.

    Args:
        folder: The folder of a run with its own phase, or with a folder for each phase.
        problems: A text is appended for each file that is missing or has changed.
    """
    for checkpoints in sorted((*folder.glob("checkpoints"), *folder.glob("*/checkpoints"))):
        newest = max(checkpoints.glob("step_*"), default=None)
        if newest is not None:
            _check_metrics(checkpoints.parent, newest, problems)
            _check_episodes(checkpoints.parent, newest, problems)


def _check_metrics(phase: Path, checkpoint: Path, problems: list[str]) -> None:
    """Append a problem for each file of metrics without all lines of its copy."""
    for copy in sorted(checkpoint.glob("logs/*.jsonl")):
        path = phase / copy.name
        try:
            lines = set(read_lines(path)) if path.exists() else set()
            lost = sum(line not in lines for line in read_lines(copy))
        except OSError:  # named by the functions that show the file
            continue
        if lost:
            problems.append(
                f"{path} differs from its copy {copy}: {lost} of its lines are missing or have "
                "changed"
            )


def _check_episodes(phase: Path, checkpoint: Path, problems: list[str]) -> None:
    """Append a problem if files of episodes are missing or have another size."""
    saved = read_file(checkpoint / "logs/episodes.json", problems)
    sizes = saved if isinstance(saved, dict) else {}
    paths = {phase / "episodes" / name: sizes[name] for name in sizes if _NAME.fullmatch(name)}
    changed = [path for path, size in paths.items() if _size(path) != size]
    if changed:
        more = f", and {len(changed) - 1} more such files" if changed[1:] else ""
        problems.append(f"{changed[0]} is missing or has another size than when it was saved{more}")


def _size(path: Path) -> int | None:
    """Return the size of a file in bytes, or None if it does not exist."""
    return path.stat().st_size if path.is_file() else None
