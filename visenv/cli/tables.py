"""Progress bars and summary tables in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from visenv.evaluation import Row


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error; call the yielded function once per item."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def print_summary(rows: Sequence[Row]) -> None:
    """The evaluation rows, one column for each mean."""
    names = list(dict.fromkeys(name for row in rows for name in row.means))
    table = Table("", "episodes", "aborted", "truncated", *names)
    for row in rows:
        means = [str(row.means[name]) if name in row.means else "" for name in names]
        counts = (row.episodes, row.aborted, row.truncated)
        table.add_row(row.label, *map(str, counts), *means)
    Console().print(table)
