"""Defines suites: the data sets of a paper's table, one for each column, and their average.

A family defines its suites (listed in its manifest); `visenv suite` plays them.
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


@dataclass(frozen=True)
class SuiteColumn:
    """Describes one column of a table.

    Attributes:
        name: The heading of the column.
        env: The id of the environment that plays the column.
        data: The data set, with the names of folders in braces: ``"hrbench:{hrbench}?size=8k"``;
            ``""`` means the environment's own data.
        options: Further options of the environment.
        total: The total of the data set that is the score of the column (the ``totals`` of the
            source). If ``""``, the score is the mean of the suite's metric.
    """

    name: str
    env: str
    data: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    total: str = ""

    @property
    def folders(self) -> list[str]:
        """Return the names of the folders that the column needs."""
        return [name for _, name, _, _ in string.Formatter().parse(self.data) if name]

    @property
    def slug(self) -> str:
        """Return the name of the column as a folder name."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    def words(self) -> list[str]:
        """Return the options as ``key=value`` strings."""
        return [f"{name}={json.dumps(value)}" for name, value in self.options.items()]


@dataclass(frozen=True)
class Suite:
    """Holds the columns of a table; the average gives each column the same weight.

    Attributes:
        title: A description of the table in one line.
        columns: The columns of the table.
        metric: The metric that is averaged, from 0 to 1.
        controls: Controls under which every policy is also played; each control adds a row.
        episodes: Default number of samples of each column; None means all rows.
        repeats: Default number of times that each sample is played.
        temperature: Default sampling temperature.
    """

    title: str
    columns: tuple[SuiteColumn, ...]
    metric: str = "accuracy"
    controls: tuple[str, ...] = ()
    episodes: int | None = None
    repeats: int = 1
    temperature: float = 0.0

    @property
    def folders(self) -> list[str]:
        """Return the names of all folders that the suite needs."""
        return [*dict.fromkeys(name for column in self.columns for name in column.folders)]


class ColumnResult(NamedTuple):
    """Holds the result of a column for one policy, with or without a control.

    Attributes:
        name: The heading of the column.
        score: The score of the column, 0 to 1; NaN if no row was played.
        episodes: Number of episodes in the mean.
        aborted: Number of these that a failure ended; each counts as 0.
        left_out: Rows that cannot be used, each as ``"<file>:<row>: <problem>"``.
        skipped: The reason why the column was not played, ``""`` if it was played.
        failure: The reason of the first aborted episode, ``""`` if there is none.
    """

    name: str
    score: Mean = NOTHING
    episodes: int = 0
    aborted: int = 0
    left_out: tuple[str, ...] = ()
    skipped: str = ""
    failure: str = ""


def read_folders(suite: Suite, words: Sequence[str]) -> dict[str, str]:
    """Return the folders given as ``NAME=PATH``.

    Raises:
        UnknownNameError: If the suite has no folder of that name; suggests the nearest.
        ConfigurationError: If a word has another form.
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


def column_result(
    column: SuiteColumn, metric: str, summary: Summary, left_out: Iterable[object]
) -> ColumnResult:
    """Return the result of a column from the summary of its episodes."""
    overall = summary.rows[0]
    score = overall.means.get(metric, NOTHING)
    if column.total:
        score = Mean(summary.totals.get(column.total, math.nan), math.nan, math.nan)
    reasons = (each.reason for each in summary.failures if each.status == "aborted")
    return ColumnResult(
        column.name,
        score,
        overall.episodes,
        overall.aborted,
        tuple(map(str, left_out)),
        failure=next(reasons, ""),
    )


class TableRow(NamedTuple):
    """Holds the results of one policy.

    Attributes:
        label: The name of the policy, and of the control if there is one.
        results: The result of each column.
    """

    label: str
    results: tuple[ColumnResult, ...]


def average(results: Sequence[ColumnResult]) -> Mean:
    """Return the mean of the columns; NaN if a column was not played."""
    if not results or any(math.isnan(each.score.value) for each in results):
        return NOTHING
    return mean_of([each.score for each in results])


def markdown(suite: Suite, rows: Sequence[TableRow]) -> str:
    """Return the table as a Markdown page, with all columns and rows that were left out."""
    head = [f"{suite.metric}, %", *(column.name for column in suite.columns), "Avg."]
    scores = [
        [row.label, *(per_cent(each.score) for each in row.results), per_cent(average(row.results))]
        for row in rows
    ]
    first = rows[0].results
    counts = [
        [name, *(str(each) for each in numbers), str(sum(numbers))]
        for name, numbers in (
            ("episodes", [each.episodes for each in first]),
            ("aborted", [sum(row.results[place].aborted for row in rows)
                         for place in range(len(first))]),
            ("left out", [len(each.left_out) for each in first]),
        )
    ]  # fmt: skip
    table = cell_table(head, [*scores, *counts])
    missing = [f"- {each.name}: not played: {each.skipped}" for each in first if each.skipped]
    unread = [f"- {each.name}: left out: {row}" for each in first for row in each.left_out]
    parts = [f"# {suite.title}", table, "\n".join([*missing, *unread])]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(suite: Suite, rows: Sequence[TableRow]) -> dict[str, Any]:
    """Return the table as a JSON object; a mean is ``[value, low, high]``, None for NaN."""
    return {
        "title": suite.title,
        "metric": suite.metric,
        "rows": [
            {
                "label": row.label,
                "columns": [{**each._asdict(), "score": _finite(each.score)}
                            for each in row.results],
                "average": _finite(average(row.results)),
            }
            for row in rows
        ],
    }  # fmt: skip


def per_cent(mean: Mean) -> str:
    """Return a share in per cent with its interval, ``""`` for NaN."""
    if math.isnan(mean.value):
        return ""
    text = f"{100 * mean.value:.1f}"
    return text if math.isnan(mean.low) else f"{text} [{100 * mean.low:.1f}, {100 * mean.high:.1f}]"


def _finite(mean: Mean) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in mean]
