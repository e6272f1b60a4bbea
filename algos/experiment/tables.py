"""Divides a wide table into tables that fit into the console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from rich.table import Table

from visenv.terminal import printable, rich_text

_PADDING = 3
"""A column has a blank on each side and a line."""


def fitting_tables(
    title: str,
    labels: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    width: int,
) -> Iterator[Table]:
    """Yield tables that together have all columns; each begins with the labels of the rows.

    Args:
        title: The title of each table.
        labels: The cells of the columns that every table has, by header.
        columns: The cells of the other columns, by header; a table has at least one of them. If
            there is none, one table shows the labels.
        width: The width of the console in characters; labels and one column should fit into it.
    """
    free = width - 1 - sum(map(_width, labels, labels.values()))
    names = list(columns)
    while True:
        shown = names[: _fitting([_width(name, columns[name]) for name in names], free)]
        table = Table(title=rich_text(title))
        cells = {**labels, **{name: columns[name] for name in shown}}
        for name in cells:
            table.add_column(rich_text(name), no_wrap=True)
        for row in zip(*cells.values(), strict=True):
            table.add_row(*map(rich_text, row))
        yield table
        names = names[len(shown) :]
        if not names:
            return


def _width(name: str, cells: Sequence[str]) -> int:
    return max(len(printable(text)) for text in (name, *cells)) + _PADDING


def _fitting(widths: Sequence[int], free: int) -> int:
    """Return the number of leading widths whose sum is at most `free`, at least 1."""
    return max(sum(total <= free for total in accumulate(widths)), 1)
