"""Builds the index of all episodes, and writes the files of a report in parts.

A page that was opened from a file may not read other files, but it may run scripts. Each part is
therefore a script with one call, whose arguments are JSON in a string, so that no text can become
code. `bounded` limits the size of JSON, because policies and data sets may contain long texts, or
NaN.

Texts occur several times, so that a text column contains indices into a list of its texts. The
index of 20,000 episodes has a few megabytes, and a filter is a loop over arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from visenv.evaluation.values import labels_key
from visenv.files import check_no_link, output_folder, write_text
from visenv.records import event_to_json
from visenv.types import Answered, Episode, ToolCalled, TurnTaken

LONGEST_TEXT = 20_000
"""Maximum number of characters of one text on the page; the page shows how many more there are."""

DEEPEST = 16
"""Maximum number of levels of nested data on the page."""

LARGEST, SMALLEST = 1e300, 1e-300
"""Limits of the size of a number on the page. The page computes with differences and quotients of
numbers, and a chart of larger ones would have no ends."""

MOST_COLUMNS = 500
"""Maximum number of terms, and most metrics, in the index. Each has a value for each episode."""

LONGEST_CELL = 200
"""Maximum number of characters of a text in the table; of a longer text, the start and the end are
shown."""

_TAIL = 110


def bounded(value: Any, depth: int = 0) -> Any:
    """Return the value with None for NaN and infinity, and with bounded texts and nesting.

    Numbers beyond `LARGEST` become None, and those below `SMALLEST` 0.
    """
    if depth > DEEPEST:
        return "…"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _bounded_number(value)
    if isinstance(value, str):
        more = len(value) - LONGEST_TEXT
        return value if more <= 0 else f"{value[:LONGEST_TEXT]}… [{more} more characters]"
    if isinstance(value, dict):
        return {bounded(str(key)): bounded(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [bounded(each, depth + 1) for each in value]
    return value


def _bounded_number(value: float) -> float | None:
    if not abs(value) < LARGEST:  # also for NaN
        return None
    return 0 if abs(value) < SMALLEST else value


EPISODES_IN_PART = 32

TEXTS_IN_PART = 1000


class ReportWriter:
    """Writes the parts of a report, as a context manager.

    If the block ends without an error, the parts of the previous report are removed. If it raises,
    the new parts are removed, and the previous report remains valid.

    Args:
        folder: Folder for ``episodes-<token>-<number>.js`` and ``texts-<token>-<number>.js``.

    Attributes:
        token: Part of the file names, so that a page never reads the parts of another report.
        bytes_of_texts: Size of the searched texts in bytes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.token = secrets.token_hex(8)
        self.bytes_of_texts = 0
        self._episodes: list[Any] = []
        self._texts: list[str] = []
        self._counts = {"episodes": 0, "texts": 0}

    def __enter__(self) -> ReportWriter:
        """Return the store itself.

        Raises:
            ConfigurationError: If the folder is a link.
        """
        check_no_link(self._folder)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the parts of other reports, or after an error the parts of this one."""
        for part in (*self._folder.glob("episodes-*.js"), *self._folder.glob("texts-*.js")):
            own = part.name.split("-")[1] == self.token
            if own == (error is not None):
                part.unlink()

    def add(self, record: dict[str, Any], text: str) -> None:
        """Add an episode in the format of the page, and its searchable text."""
        self._episodes.append(bounded(record))
        self._texts.append(text)
        if len(self._episodes) == EPISODES_IN_PART:
            self._flush("episodes", self._episodes)
        if len(self._texts) == TEXTS_IN_PART:
            self._flush("texts", self._texts)

    def close(self) -> None:
        """Write the parts that are not yet full."""
        for kind, rows in (("episodes", self._episodes), ("texts", self._texts)):
            if rows:
                self._flush(kind, rows)

    def _flush(self, kind: str, rows: list[Any]) -> None:
        number = self._counts[kind]
        packed = json.dumps(json.dumps(rows, ensure_ascii=True, allow_nan=False))
        path = output_folder(self._folder) / f"{kind}-{self.token}-{number}.js"
        write_text(path, f'receive("{kind}",{number},{packed})\n')
        if kind == "texts":
            self.bytes_of_texts += len(packed)
        self._counts[kind] += 1
        rows.clear()


class TextColumn:
    """Holds a column of texts, or of tuples of texts; each distinct value is stored once."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._rows: list[int] = []

    def add(self, value: Any) -> None:
        """Add the value of the next episode."""
        self._rows.append(self._codes.setdefault(value, len(self._codes)))

    def to_json(self) -> dict[str, Any]:
        """Return ``values`` in alphabetical order and, for each episode, the index of its value.

        Sorting by ``rows`` then sorts the column without comparing texts.
        """
        values = sorted(self._codes, key=lambda value: (str(value).lower(), str(value)))
        places = {self._codes[value]: place for place, value in enumerate(values)}
        return {"values": values, "rows": [places[code] for code in self._rows]}


class IndexRow(NamedTuple):
    """Holds the values of an episode in the columns of the index.

    Attributes:
        texts: Texts, or tuples of texts, by column.
        numbers: Numbers by column.
        terms: The reward terms; none if the episode was aborted.
        metrics: The metrics; none if the episode was aborted.
    """

    texts: Mapping[str, Any]
    numbers: Mapping[str, float | None]
    terms: Mapping[str, float | None]
    metrics: Mapping[str, float | None]


def index_row(episode: Episode) -> IndexRow:
    """Return the row of an episode."""
    counts = episode.status != "aborted"
    terms, metrics = (episode.terms, episode.metrics) if counts else ({}, {})
    return IndexRow(_texts(episode), *map(_shortened, (_numbers(episode), terms, metrics)))


class EpisodeIndex:
    """Collects the columns, one episode at a time.

    Attributes:
        count: The number of episodes.
        left_out: The names of terms and metrics beyond `MOST_COLUMNS`.
    """

    def __init__(self) -> None:
        self.count = 0
        self.left_out: set[str] = set()
        self._texts: dict[str, TextColumn] = {}
        self._numbers: dict[str, list[float | None]] = {}
        self._terms: dict[str, list[float | None]] = {}
        self._metrics: dict[str, list[float | None]] = {}

    def add(self, row: IndexRow, saved_in: str, line: int) -> None:
        """Add the row of an episode.

        Reward, terms and metrics of an aborted episode are empty. In the means of a file it counts
        as 0, as in an evaluation (`visenv.evaluation.values.counted_values`).

        Args:
            row: The row of the episode, as `index_row` returns it.
            saved_in: The file of the episode, as named on the page.
            line: The line of the episode in that file, from 0.
        """
        for name, text in {**row.texts, "saved_in": saved_in}.items():
            self._texts.setdefault(name, TextColumn()).add(text)
        for name, number in {**row.numbers, "line": line}.items():
            self._numbers.setdefault(name, []).append(number)
        for columns, values in ((self._terms, row.terms), (self._metrics, row.metrics)):
            for name, value in values.items():
                if name in columns or len(columns) < MOST_COLUMNS:
                    columns.setdefault(name, [None] * self.count).append(value)
                else:
                    self.left_out.add(name)
        self.count += 1
        for columns in (self._terms, self._metrics):
            for column in columns.values():
                column.extend([None] * (self.count - len(column)))

    def to_json(self) -> dict[str, Any]:
        """Return ``count``, ``texts``, ``numbers``, ``terms`` and ``metrics``, columns by name."""
        return {
            "count": self.count,
            "texts": {name: column.to_json() for name, column in self._texts.items()},
            "numbers": self._numbers,
            "terms": self._terms,
            "metrics": self._metrics,
        }


def outcome(episode: Episode) -> str:
    """Return how an episode ended: right or wrong if it finished and has an accuracy.

    If a task has a success instead of an accuracy, such as a robot task, the success is used.
    """
    if episode.status != "terminated":
        return episode.status
    accuracy = episode.metrics.get("accuracy", episode.metrics.get("success"))
    if accuracy is None or math.isnan(accuracy):
        return "finished"
    return "right" if accuracy >= 0.5 else "wrong"


def searched_text(episode: Episode) -> str:
    """Return the searchable text, in lower case: sample, question, answers, turns."""
    asked = [episode.sample_id, episode.question, _answer(episode), *episode.answers]
    parts = [*asked, *(turn.text for turn in episode.turns)]
    return "\n".join(part[:LONGEST_TEXT] for part in parts).lower()


def _texts(episode: Episode) -> dict[str, Any]:
    calls = [event for event in episode.events if isinstance(event, ToolCalled)]
    failed = [f"{call.tool} (failed)" for call in calls if not call.ok]
    return {
        "id": episode.sample_id,
        "env": episode.env_id,
        "kind": episode.kind,
        "question": cell(episode.question),
        "answer": cell(_answer(episode)),
        "truth": cell(_accepted(episode.answers)),
        "outcome": outcome(episode),
        "events": _once([_name(event) for event in episode.events if type(event) is not TurnTaken]),
        "tools": _once([*(call.tool for call in calls), *failed]),
        "pair": _pair(episode),
        "labels": labels_key(episode),
    }


def _numbers(episode: Episode) -> dict[str, float | None]:
    seconds = [
        part
        for turn in episode.turns
        for part in (turn.sampling_seconds, turn.env_seconds)
        if part is not None
    ]
    given = [turn.advantage for turn in episode.turns if turn.advantage is not None]
    return {
        "group": episode.group,
        "member": episode.member,
        "reward": None if episode.status == "aborted" else episode.reward,
        "advantage": float(np.mean(given)) if given else None,
        "turns": len(episode.turns),
        "tokens": episode.num_sampled_tokens if episode.segments else None,
        "seconds": sum(seconds) if seconds else None,
    }


def _name(event: Any) -> str:
    name: str = event_to_json(event)["event"]
    return name


def _answer(episode: Episode) -> str:
    return next((e.answer for e in reversed(episode.events) if isinstance(e, Answered)), "")


def _accepted(answers: Sequence[str]) -> str:
    """Return the different accepted answers; the answers of ten people are often equal."""
    once = list(dict.fromkeys(answers))
    return ", ".join(once[:3]) + (", …" if len(once) > 3 else "")


def cell(text: str) -> str:
    """Return a text for a cell of the table with its end, where judgments often are."""
    text = text.strip()
    if len(text) <= LONGEST_CELL:
        return text
    return f"{text[: LONGEST_CELL - _TAIL].rstrip()} … {text[-_TAIL:].lstrip()}"


def _once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _pair(episode: Episode) -> str:
    """Return ``<sample>/<member>``, which is the same for an episode of another policy."""
    same = (episode.env_id, episode.sample_id, episode.seed, episode.index)
    sample = hashlib.blake2b(repr(same).encode("utf-8", "surrogatepass"), digest_size=6)
    return f"{sample.hexdigest()}/{episode.member}"


def _shortened(numbers: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: _short(number) for name, number in numbers.items()}


def _short(number: float | None) -> float | None:
    """Return a number with six digits, which suffice for a table; None if it is not finite."""
    if number is None or not math.isfinite(number):
        return None
    return number if isinstance(number, int) else float(f"{number:.6g}")
