"""Progress bars and summary tables in the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from visenv.evaluation import Mean, Row


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error; call the yielded function once per item."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def print_summary(rows: Sequence[Row]) -> None:
    """The evaluation: a column for each of its rows, which are few, and a line for each mean."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for row in rows:
        table.add_column(row.label or "no kind", justify="right", overflow="fold")
    for name in ("episodes", "aborted", "truncated"):
        table.add_row(name, *(str(getattr(row, name)) for row in rows))
    for name in dict.fromkeys(name for row in rows for name in row.means):
        table.add_row(name, *(_mean(row.means.get(name)) for row in rows))
    Console().print(table)


def _mean(mean: Mean | None) -> str:
    """With its interval, which a single episode does not have."""
    if mean is None:
        return ""
    return f"{mean.value:.3f}" if math.isnan(mean.half_width) else str(mean)
