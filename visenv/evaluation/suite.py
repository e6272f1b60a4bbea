"""A suite: the data sets of a paper's table, one for each column, and their average.

A family describes its suites (`visenv.registration.SUITES` names them); `visenv suite` plays them.
"""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.evaluation.intervals import NOTHING, Mean, mean_of
from visenv.evaluation.summary import Summary
from visenv.evaluation.summary_files import cell_table

METRIC = "accuracy"


@dataclass(frozen=True)
class Column:
    """Describes one column of a table.

    Attributes:
        name: Its heading.
        env: The id of the environment that plays it.
        data: The data set, with the names of folders in braces: ``"hrbench:{hrbench}?size=8k"``.
        options: Further options of the environment.
        total: The total of the data set that is its score (the ``totals`` of the source); ``""``:
            the mean accuracy.
    """

    name: str
    env: str
    data: str
    options: Mapping[str, Any] = field(default_factory=dict)
    total: str = ""

    @property
    def folders(self) -> list[str]:
        """Return the names of the folders that the column needs."""
        return [name for _, name, _, _ in string.Formatter().parse(self.data) if name]

    @property
    def slug(self) -> str:
        """Return the name of the column as the name of a folder."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    def words(self) -> list[str]:
        """Return the options as ``key=value`` words."""
        return [f"{name}={json.dumps(value)}" for name, value in self.options.items()]


@dataclass(frozen=True)
class Suite:
    """The columns of a table; the average gives each column the same weight.

    Attributes:
        title: What the table is, in a line.
        columns: Its columns.
    """

    title: str
    columns: tuple[Column, ...]

    @property
    def folders(self) -> list[str]:
        """Return the names of all folders that the suite needs."""
        return [*dict.fromkeys(name for column in self.columns for name in column.folders)]


class ColumnResult(NamedTuple):
    """Holds the result of a column.

    Attributes:
        name: Its heading.
        accuracy: Its score, 0 to 1; NaN where no row was played.
        played: Rows in the mean.
        aborted: Rows that a failure ended; they are in no mean.
        left_out: Rows that cannot be used, each as ``"<file>:<row>: <problem>"``.
        skipped: Why the column was not played, ``""`` if it was.
    """

    name: str
    accuracy: Mean = NOTHING
    played: int = 0
    aborted: int = 0
    left_out: tuple[str, ...] = ()
    skipped: str = ""


def read_folders(suite: Suite, words: Sequence[str]) -> dict[str, str]:
    """Return the folders given as ``NAME=PATH``.

    Raises:
        UnknownNameError: If the suite has no folder of that name; names the nearest.
        ConfigurationError: If a word is of another form.
    """
    folders: dict[str, str] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or not path:
            raise ConfigurationError(f"Folders are given as NAME=PATH, got {word!r}.")
        if name not in suite.folders:
            raise UnknownNameError("folder of the suite", name, suite.folders)
        folders[name] = path
    return folders


def column_result(column: Column, summary: Summary, left_out: Iterable[object]) -> ColumnResult:
    """Return the result of a column from the summary of its episodes."""
    overall = summary.rows[0]
    accuracy = overall.means.get(METRIC, NOTHING)
    if column.total:
        accuracy = Mean(summary.totals.get(column.total, math.nan), math.nan, math.nan)
    return ColumnResult(
        column.name, accuracy, overall.episodes, overall.aborted, tuple(map(str, left_out))
    )


def average(results: Sequence[ColumnResult]) -> Mean:
    """Return the mean of the columns; NaN unless every column was played."""
    if not results or any(math.isnan(each.accuracy.value) for each in results):
        return NOTHING
    return mean_of([each.accuracy for each in results])


def markdown(title: str, results: Sequence[ColumnResult]) -> str:
    """Return the table as a Markdown page, with every column and row that was left out."""
    shown = [*(each.accuracy for each in results), average(results)]
    totals = [
        ["rows", *(str(each.played) for each in results), str(sum(r.played for r in results))],
        ["aborted", *(str(each.aborted) for each in results), str(sum(r.aborted for r in results))],
        [
            "left out",
            *(str(len(each.left_out)) for each in results),
            str(sum(len(r.left_out) for r in results)),
        ],
    ]
    table = cell_table(
        ["", *(each.name for each in results), "Avg."],
        [["accuracy, %", *map(per_cent, shown)], *totals],
    )
    missing = [f"- {each.name}: not played: {each.skipped}" for each in results if each.skipped]
    rows = [f"- {each.name}: left out: {row}" for each in results for row in each.left_out]
    parts = [f"# {title}", table, "\n".join([*missing, *rows])]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(results: Sequence[ColumnResult]) -> dict[str, Any]:
    """Return the table as a JSON object; a mean is ``[value, low, high]``, None for NaN."""
    columns = [{**each._asdict(), METRIC: _finite(each.accuracy)} for each in results]
    return {"columns": columns, "average": _finite(average(results))}


def per_cent(mean: Mean) -> str:
    """Return a share in per cent with its interval, ``""`` for NaN."""
    if math.isnan(mean.value):
        return ""
    text = f"{100 * mean.value:.1f}"
    return text if math.isnan(mean.low) else f"{text} [{100 * mean.low:.1f}, {100 * mean.high:.1f}]"


def _finite(mean: Mean) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in mean]
