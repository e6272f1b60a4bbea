"""Reads a run's folder: facts, metrics, results and episodes, and the files that cannot be read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from visenv.episodes import read_episodes
from visenv.errors import DataError, VisenvError
from visenv.types import Episode
from visenv.viewer.episode import episode_record
from visenv.viewer.facts import run_facts

_EPISODES = (
    "episodes.jsonl",
    "*/episodes.jsonl",
    "episodes/*.jsonl",
    "*/episodes/*.jsonl",
    "evaluation/*.jsonl",
)


class SavedEpisode(NamedTuple):
    """Holds an episode of a run's folder.

    Attributes:
        episode: The episode.
        record: The episode in the format of the page.
        saved_in: The file of the episode, as named on the page.
        line: Its line in that file, from 0.
    """

    episode: Episode
    record: dict[str, Any]
    saved_in: str
    line: int


def run_data(folder: Path, problems: list[str]) -> dict[str, Any]:
    """Return the data of a run besides its episodes, JSON-like except for NaN and infinity.

    Returns:
        ``name``; ``facts`` (`run_facts`); ``metrics`` (a row for each step, with its phase);
        ``results`` (rows of a table); ``seconds`` by phase.
    """
    results = _results(folder, problems)
    seconds, rows = results.get("seconds"), results.get("rows")
    seconds = seconds if isinstance(seconds, dict) else {}
    return {
        "name": folder.resolve().name,
        "facts": run_facts(folder, problems),
        "metrics": list(_metrics(folder, list(seconds), problems)),
        "results": [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else [],
        "seconds": seconds,
    }


def episode_files(folder: Path) -> dict[str, Path]:
    """Return the files of episodes in a run's folder, by their names on the page."""
    paths = [path for pattern in _EPISODES for path in sorted(folder.glob(pattern))]
    return {
        path.relative_to(folder).with_suffix("").as_posix().replace("/episodes/", "/"): path
        for path in paths
    }


def saved_episodes(folder: Path, page_folder: Path, problems: list[str]) -> Iterator[SavedEpisode]:
    """Yield every episode of a run's folder, one at a time.

    Args:
        folder: The run's folder.
        page_folder: The folder of the page, to which the paths of images are relative.
        problems: A text is appended for each file and each episode that cannot be read.
    """
    for saved_in, path in episode_files(folder).items():
        beside = os.path.relpath(path.parent / "images", page_folder).replace(os.sep, "/")
        images = quote(os.fsencode(beside))  # a name may contain special characters
        try:
            for line, episode in enumerate(read_episodes(path, check_pixels=False)):
                try:
                    yield SavedEpisode(episode, episode_record(episode, images), saved_in, line)
                except VisenvError as error:  # a missing or broken image
                    problems.append(f"{path}, line {line + 1}: {error}")
        except DataError as error:
            problems.append(str(error))


def _results(folder: Path, problems: list[str]) -> dict[str, Any]:
    """Return a training run's ``results.json`` or an evaluation's ``summary.json``."""
    for name in ("results.json", "summary.json"):
        path = folder / name
        if path.is_file():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:
                problems.append(f"{path}: {error}")
                continue
            return found if isinstance(found, dict) else {"rows": found}
    return {}


def _metrics(folder: Path, phases: list[str], problems: list[str]) -> Iterator[dict[str, Any]]:
    """Return every logged step; phases are in the order in which they ended, otherwise by age.

    Args:
        folder: Folder of a run with its own metrics, or with a folder for each phase, or both.
        phases: The phases that have ended.
        problems: A text is appended for each file with a line that cannot be read.
    """

    def age(path: Path) -> tuple[int, float]:
        name = path.parent.name
        order = phases.index(name) if name in phases else len(phases)
        return order, path.stat().st_mtime

    found = sorted(folder.glob("*/metrics.jsonl"), key=age)
    for path in (folder / "metrics.jsonl", *found):
        if not path.is_file():
            continue
        # A run that is still running, or was killed, may have written a part of the last line.
        whole, _, _ = path.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                yield {"phase": path.parent.name, **json.loads(line)}
            except (ValueError, TypeError, RecursionError) as error:
                problems.append(f"{path}, line {number}: {error}")
                break
