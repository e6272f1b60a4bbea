"""Reads a run's folder: facts, metrics, results and episodes, and the files that cannot be read.

A folder may be damaged, or somebody else may have made it. Every value is checked, and the list of
problems names those that cannot be shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from visenv.decoding.files import MOST_LINE_BYTES, read_lines
from visenv.decoding.json_text import read_json
from visenv.episodes import read_episode_lines
from visenv.episodes.decode import BROKEN
from visenv.episodes.files import is_whole_png
from visenv.errors import DataError
from visenv.terminal import printable
from visenv.types import Episode
from visenv.viewer.episode import episode_record
from visenv.viewer.facts import check_phases, check_settings, check_steps, read_file, run_facts
from visenv.viewer.index import IndexRow, index_row, searched_text

_EPISODES = (
    "episodes.jsonl",
    "*/episodes.jsonl",
    "episodes/*.jsonl",
    "*/episodes/*.jsonl",
    "evaluation/*/*.jsonl",
)

_MOST_PROBLEMS = 20
"""Maximum number of problems of a file that are named; the number of the others is."""

_UNSHOWN = (*BROKEN, ArithmeticError, MemoryError)
"""The errors that showing an episode can raise, whatever free values it contains."""


class SavedEpisode(NamedTuple):
    """Holds an episode of a run's folder.

    Attributes:
        record: The episode in the format of the page.
        text: The searchable text of the episode.
        saved_in: The file of the episode, as named on the page.
        line: The line of the episode in that file, from 0.
    """

    record: dict[str, Any]
    row: IndexRow
    text: str
    saved_in: str
    line: int


class Problems:
    """Appends the problems of one file to a list, at most `_MOST_PROBLEMS`, and then their number.

    Args:
        problems: The list of all files.
        path: The file.
    """

    def __init__(self, problems: list[str], path: Path) -> None:
        self._problems, self._path, self._count = problems, path, 0

    def add(self, problem: str) -> None:
        """Append a problem."""
        self._count += 1
        if self._count <= _MOST_PROBLEMS:
            self._problems.append(problem)
        elif self._count == _MOST_PROBLEMS + 1:
            self._problems.append("")
        if self._count > _MOST_PROBLEMS:
            more = self._count - _MOST_PROBLEMS
            self._problems[-1] = f"{self._path}: {more} more problems"


def run_data(folder: Path, problems: list[str]) -> dict[str, Any]:
    """Return the data of a run besides its episodes, JSON-like except for NaN and infinity.

    Returns:
        ``name``; ``facts`` (`run_facts`); ``metrics`` (a row for each step, with its phase and
        numbers); ``results`` (rows of a table, `_results`); ``seconds`` by phase.
    """
    results, seconds = _results(folder, problems)
    metrics = list(_metrics(folder, list(seconds), problems))
    check_settings(folder, problems)
    check_steps(folder, metrics, problems)
    check_phases(folder, problems)
    return {
        "name": printable(folder.resolve().name),
        "facts": run_facts(folder, problems),
        "metrics": metrics,
        "results": results,
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
        problems: A text is appended for each file, each episode and each image that cannot be read.
    """
    for saved_in, path in episode_files(folder).items():
        beside = os.path.relpath(path.parent / "images", page_folder).replace(os.sep, "/")
        images = quote(os.fsencode(beside))  # a name may contain special characters
        of_file = Problems(problems, path)
        checked: set[str] = set()
        try:
            for line in read_episode_lines(path, check_pixels=False):
                if line.episode is None:
                    of_file.add(line.problem)
                    continue
                try:
                    # Half a surrogate pair in a file name cannot be part of a link.
                    yield _saved(line.episode, images, printable(saved_in), line.number - 1)
                    _check_images(line.episode, path.parent / "images", checked, of_file)
                except _UNSHOWN as error:  # an image is missing, or a free value has another form
                    known = isinstance(error, DataError)
                    reason = str(error) if known else f"it cannot be shown: {error!r:.500}"
                    of_file.add(f"{path}, line {line.number}: {reason}")
        except DataError as error:
            of_file.add(str(error))


def _saved(episode: Episode, images: str, saved_in: str, line: int) -> SavedEpisode:
    record = episode_record(episode, images)
    return SavedEpisode(record, index_row(episode), searched_text(episode), saved_in, line)


def _check_images(episode: Episode, folder: Path, checked: set[str], problems: Problems) -> None:
    """Append a problem for each image of an episode that is damaged; check each image once."""
    for image in (*episode.images, *episode.hidden_frames):
        if image.sha256 in checked:
            continue
        checked.add(image.sha256)
        path = folder / f"{image.sha256}.png"
        try:
            if not is_whole_png(path):
                problems.add(f"{path} is damaged: it is not a complete PNG file.")
        except OSError as error:
            problems.add(f"{path} cannot be read: {error}")


def _results(folder: Path, problems: list[str]) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the results and the seconds of each phase, from ``results.json`` or ``summary.json``.

    A value of a result is a number, a text, None, or a mean with its interval, three numbers.
    """
    for name in ("results.json", "summary.json"):
        path = folder / name
        found = read_file(path, problems)
        if found is None:
            continue
        of_file = Problems(problems, path)
        whole = found if isinstance(found, dict) else {"rows": found}
        rows, seconds = whole.get("rows", []), whole.get("seconds", {})
        if not isinstance(rows, list):
            of_file.add(f"{path}: rows must be a list, got {_kind(rows)}")
            rows = []
        if not isinstance(seconds, dict):
            of_file.add(f"{path}: seconds must be an object, got {_kind(seconds)}")
            seconds = {}
        timed = {phase: value for phase, value in seconds.items() if _is_number(value)}
        for phase in seconds.keys() - timed.keys():
            of_file.add(f"{path}: the seconds of {phase!r:.80} are {_kind(seconds[phase])}")
        return list(_result_rows(rows, path, of_file)), timed
    return [], {}


def _result_rows(rows: list[Any], path: Path, problems: Problems) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            problems.add(f"{path}: row {number} must be an object, got {_kind(row)}")
            continue
        shown: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, str) or value is None or _is_number(value) or _is_mean(value):
                shown[name] = value
            else:
                problems.add(f"{path}: {name!r:.80} of row {number} is {_kind(value)}")
        yield shown


def _metrics(folder: Path, phases: list[str], problems: list[str]) -> Iterator[dict[str, Any]]:
    """Return every logged step; phases are in the order in which they ended, otherwise by age.

    The folder has its own metrics, or a folder for each phase, or both. A line that cannot be read
    is appended to the problems.
    """

    def age(path: Path) -> tuple[int, float]:
        name = path.parent.name
        order = phases.index(name) if name in phases else len(phases)
        return order, path.lstat().st_mtime

    found = sorted(folder.glob("*/metrics.jsonl"), key=age)
    for path in (folder / "metrics.jsonl", *found):
        if not path.exists():
            continue
        of_file = Problems(problems, path)
        try:
            for number, line in enumerate(read_lines(path), start=1):
                try:
                    yield {"phase": path.parent.name, **_numbers(read_json(line))}
                except DataError as error:
                    # A run that is still running, or was killed, may have written a part of the
                    # last line.
                    if line.endswith(b"\n") or len(line) > MOST_LINE_BYTES:
                        of_file.add(f"{path}, line {number}: {error}")
        except OSError as error:
            of_file.add(f"{path} cannot be read: {error}")


def _numbers(row: Any) -> dict[str, Any]:
    """Return the numbers of a logged step; other values, such as names, are not drawn."""
    if not isinstance(row, dict):
        raise DataError(f"a step must be an object, got {_kind(row)}")
    if "step" in row and not _is_number(row["step"]):
        raise DataError(f"the step must be a number, got {_kind(row['step'])}")
    return {name: value for name, value in row.items() if _is_number(value) and name != "phase"}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_mean(value: Any) -> bool:
    """Return whether a value is a mean with the ends of its interval, which may be unknown."""
    if not isinstance(value, list) or len(value) != 3 or not _is_number(value[0]):
        return False
    ends = value[1:]
    return all(map(_is_number, ends)) or ends == [None, None]


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {json.dumps(value)[:80]}"
