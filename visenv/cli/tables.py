"""Prints progress bars and summary tables in the terminal, and ends commands whose items failed.

A command that lists its failures, but exits with 0, looks like a success to a script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from visenv.errors import VisenvError
from visenv.evaluation.compare import Comparison
from visenv.evaluation.intervals import Mean
from visenv.evaluation.summary import ControlRow, Summary, SummaryRow, ToolRow
from visenv.terminal import printable, rich_text
from visenv.types import Episode

_LEAST_WIDTH = 12
"""Minimum width of a column in characters; a longer name of a group is wrapped."""


def check_not_all_aborted(groups: Iterable[tuple[str, Sequence[Episode]]]) -> None:
    """Raise an error if every episode of one of the groups was aborted.

    Args:
        groups: The name of each group in the error, ``""`` for none, and its episodes.

    Raises:
        VisenvError: With the number of episodes, and the first failure.
    """
    for name, episodes in groups:
        failures = [str(each.failure) for each in episodes if each.failure is not None]
        what = f"episodes{f' of {name}' if name else ''} were aborted"
        check_not_all_failed(what, len(episodes), len(failures), next(iter(failures), ""))


def check_not_all_failed(what: str, total: int, failed: int, first_reason: str) -> None:
    """Raise an error if every item failed.

    Args:
        what: The items and what happened, as in ``"rows failed"``.
        total: The number of items; 0 is no failure.
        failed: The number of items that failed.
        first_reason: The reason of the first item that failed, ``""`` if there is none.

    Raises:
        VisenvError: With the number of items, and the first reason.
    """
    if total and failed >= total:
        count = f"All {total}" if total > 1 else "All of 1"
        first = f" The first reason: {first_reason}" if first_reason else ""
        raise VisenvError(f"{count} {what}.{first}")


@contextmanager
def progress(label: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
    """Show a progress bar on standard error; call the yielded function once per item."""
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(label), total=total, completed=done)
        yield lambda: bar.advance(task)


def print_summary(summary: Summary) -> None:
    """Print a table for each grouping, with a column of all episodes, and a table of the tools.

    A mean is printed with its 95 % interval: ``0.600 [0.231, 0.882]``.
    """
    console = Console()
    overall = summary.rows[0]
    groupings = groupby(summary.rows[1:], key=lambda row: row.grouping)
    tables = [([overall, *rows], grouping) for grouping, rows in groupings]
    for rows, grouping in tables or [([overall], "")]:
        for table in _means(rows, grouping, console.width):
            console.print(table)
    if any(row.total for row in summary.tools):
        console.print(_tools(summary.tools))
    for name, value in summary.totals.items():
        console.print(rich_text(f"{name}: {value:.3f}"))
    if summary.controls:
        console.print(_controls(summary.controls))
    for row in summary.controls:
        if row.control == "no_tool":
            console.print(f"tool necessity: {row.difference}", highlight=False)


def table_of(first: str, second: str, rows: Sequence[tuple[str, str]]) -> Table:
    """Return a table with two columns of plain text, whose lines may be long."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    table.add_column(second, overflow="fold")
    for row in rows:
        table.add_row(*(rich_text(text, keep="\n") for text in row))
    return table


def print_comparison(comparison: Comparison) -> None:
    """Print the paired differences of two evaluations."""
    table = _table("metric", "samples", "A", "B", "A - B")
    for row in comparison.metrics:
        values = (f"{row.first:.3f}", f"{row.second:.3f}", _cell(row.difference))
        table.add_row(rich_text(row.metric), str(row.samples), *values)
    console = Console()
    console.print(table)
    if any(comparison.aborted):
        first, second = comparison.aborted
        print(f"Aborted episodes count as 0: {first} in A, {second} in B.")
    left_out = comparison.only_first + comparison.only_second
    if left_out:
        print(
            f"{comparison.samples} samples are in both; only in A: {comparison.only_first}, "
            f"only in B: {comparison.only_second}."
        )


def _means(rows: Sequence[SummaryRow], corner: str, width: int) -> Iterator[Table]:
    """Yield tables with a column for each row and a line for each mean, as wide as the console."""
    names = list(dict.fromkeys(name for row in rows for name in row.means))
    repeated = any(row.samples != row.episodes for row in rows)
    counts = ["episodes", *(["samples"] if repeated else []), "aborted", "unanswered"]
    first = max(len(printable(name)) for name in (*counts, *names, corner))
    widest = max((len(_cell(each)) for row in rows for each in row.means.values()), default=0)
    # Two blanks separate columns, and each edge has one.
    fitting = max(1, (width - 2 - first) // (max(widest, _LEAST_WIDTH) + 2))
    for start in range(0, len(rows), fitting):
        shown = rows[start : start + fitting]
        table = _table(corner, *(row.label or "no kind" for row in shown))
        for name in counts:
            table.add_row(name, *(str(getattr(row, name)) for row in shown))
        for name in names:
            table.add_row(rich_text(name), *(_cell(row.means.get(name)) for row in shown))
        yield table


def _tools(rows: Sequence[ToolRow]) -> Table:
    table = _table("tool", "calls", "episodes with a call", "calls with a result")
    for row in rows:
        name = row.tool or "(none named)"
        table.add_row(rich_text(name[:60]), str(row.total), _cell(row.used), _cell(row.success))
    return table


def _controls(rows: Sequence[ControlRow]) -> Table:
    metric = rows[0].metric
    table = _table("control", "samples", "aborted", metric, f"{metric} lost, paired")
    for row in rows:
        counts = (str(row.samples), str(row.aborted))
        table.add_row(rich_text(row.control), *counts, _cell(row.value), _cell(row.difference))
    return table


def _cell(mean: Mean | None) -> Text:
    """Return a mean as a cell without line breaks."""
    shown = "" if mean is None or math.isnan(mean.value) else str(mean)
    return Text(shown, no_wrap=True)


def _table(corner: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column(rich_text(corner))
    for name in columns:
        table.add_column(rich_text(name), justify="right", overflow="fold")
    return table
