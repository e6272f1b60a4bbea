"""Reads a run's folder: metrics, results and episodes, and what of it cannot be read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from visenv.episodes import read_episodes
from visenv.errors import DataError
from visenv.viewer.episode import episode_record

MOST_EPISODES = 600
"""Episodes on one page; of more, an even selection is shown and the page says so."""

_EPISODES = (
    "episodes.jsonl",
    "*/episodes.jsonl",
    "episodes/*.jsonl",
    "*/episodes/*.jsonl",
    "evaluation/*.jsonl",
)


def gather(folder: Path) -> dict[str, Any]:
    """What the page shows of the run, JSON-like but for NaN and infinity.

    Returns:
        ``name``; ``metrics`` (a row per step, with its phase); ``results`` (rows of a table);
        ``seconds`` by phase; ``episodes`` and ``episodes_in_all``; ``problems`` (texts).
    """
    problems: list[str] = []
    results = _results(folder, problems)
    seconds = results.get("seconds", {})
    total, episodes = _episodes(folder, problems)
    return {
        "name": folder.resolve().name,
        "metrics": list(_metrics(folder, list(seconds), problems)),
        "results": results.get("rows", []),
        "seconds": seconds,
        "episodes": episodes,
        "episodes_in_all": total,
        "problems": problems,
    }


def _results(folder: Path, problems: list[str]) -> dict[str, Any]:
    """What a training run (``results.json``) or an evaluation (``summary.json``) came to."""
    for name in ("results.json", "summary.json"):
        path = folder / name
        if path.is_file():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                problems.append(f"{path}: {error}")
                continue
            return found if isinstance(found, dict) else {"rows": found}
    return {}


def _metrics(folder: Path, phases: list[str], problems: list[str]) -> Iterator[dict[str, Any]]:
    """Every logged step, phases in the order they ended, or else by age.

    Args:
        folder: A run with metrics of its own, or with a folder for each phase, or both.
        phases: The phases that have ended.
        problems: Gets a text for each file with a line that cannot be read.
    """

    def age(path: Path) -> tuple[int, float]:
        name = path.parent.name
        order = phases.index(name) if name in phases else len(phases)
        return order, path.stat().st_mtime

    found = sorted(folder.glob("*/metrics.jsonl"), key=age)
    for path in (folder / "metrics.jsonl", *found):
        if not path.is_file():
            continue
        # A run that is going on, or was killed, may have written half of the last line.
        whole, _, _ = path.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                yield {"phase": path.parent.name, **json.loads(line)}
            except (ValueError, TypeError) as error:
                problems.append(f"{path}, line {number}: {error}")
                break


def _episodes(folder: Path, problems: list[str]) -> tuple[int, list[dict[str, Any]]]:
    """How many episodes there are, and an even selection of them."""
    paths = [path for pattern in _EPISODES for path in sorted(folder.glob(pattern))]
    counts = [_lines(path) for path in paths]
    total = sum(counts)
    shown = min(total, MOST_EPISODES)
    chosen = {index * total // shown for index in range(shown)}
    records = []
    first = 0
    for path, count in zip(paths, counts, strict=True):
        images = os.path.relpath(path.parent / "images", folder).replace(os.sep, "/")
        label = path.relative_to(folder).with_suffix("").as_posix().replace("/episodes/", "/")
        try:
            for index, episode in enumerate(read_episodes(path), start=first):
                if index in chosen:
                    records.append({"file": label, **episode_record(episode, images)})
        except DataError as error:
            problems.append(str(error))
        first += count
    return total, records


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
