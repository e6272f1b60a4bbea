"""Progress bars and summary tables in the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from visenv.evaluation.intervals import Mean
from visenv.evaluation.summary import Row, Summary, ToolRow


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error; call the yielded function once per item."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def print_summary(summary: Summary) -> None:
    """The evaluation: a table for each grouping, beside all episodes, and one of tools.

    A mean is shown with half the width of its interval; the files of `visenv eval` have its bounds.
    """
    console = Console()
    overall = summary.rows[0]
    groupings = groupby(summary.rows[1:], key=lambda row: row.grouping)
    tables = [_means([overall, *rows], grouping) for grouping, rows in groupings]
    for table in tables or [_means([overall], "")]:
        console.print(table)
    if any(row.total for row in summary.tools):
        console.print(_tools(summary.tools))
    for name, value in summary.totals.items():
        console.print(f"{name}: {value:.3f}")


def table_of(first: str, second: str, rows: Sequence[tuple[str, str]]) -> Table:
    """Return a table of two columns of plain text, whose lines may be long."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    table.add_column(second, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _means(rows: Sequence[Row], corner: str) -> Table:
    """A column for each row, which are few, and a line for each mean."""
    table = _table(corner, *(row.label or "no kind" for row in rows))
    for name in ("episodes", "aborted", "unanswered"):
        table.add_row(name, *(str(getattr(row, name)) for row in rows))
    for name in dict.fromkeys(name for row in rows for name in row.means):
        table.add_row(name, *(_brief(row.means.get(name)) for row in rows))
    return table


def _tools(rows: Sequence[ToolRow]) -> Table:
    table = _table("tool", "calls", "episodes with a call", "calls with a result")
    for row in rows:
        name = row.tool or "(none named)"
        shown = "".join(each if each.isprintable() else " " for each in name[:60])
        table.add_row(escape(shown), str(row.total), _brief(row.used), _brief(row.success))
    return table


def _brief(mean: Mean | None) -> str:
    return "" if mean is None or math.isnan(mean.value) else mean.brief


def _table(corner: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(corner)
    for name in columns:
        table.add_column(escape(name), justify="right", overflow="fold")
    return table
