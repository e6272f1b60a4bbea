"""Tests that wide tables are divided so that every label and number is shown."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from visenv.algos.experiment.results import fitting_tables

ROWS = ["before training", "after rl"]
COLUMNS = {f"metric_{number}": [f"{number}.000 / 0.000"] * 2 for number in range(7)}


def printed(width: int, columns: dict[str, list[str]]) -> str:
    console = Console(file=StringIO(), width=width)
    for table in fitting_tables("Scores", {"": ROWS}, columns, width):
        console.print(table)
    output = console.file
    assert isinstance(output, StringIO)
    return output.getvalue()


def headers(table: Table) -> list[str]:
    return [str(column.header) for column in table.columns]


def test_table_is_divided_at_the_width_of_the_console() -> None:
    # a label needs 15 + 3 characters, a metric 13 + 3, the last line 1: 80 characters hold three
    tables = list(fitting_tables("Scores", {"": ROWS}, COLUMNS, 80))
    assert [headers(table) for table in tables] == [
        ["", "metric_0", "metric_1", "metric_2"],
        ["", "metric_3", "metric_4", "metric_5"],
        ["", "metric_6"],
    ]
    assert len(list(fitting_tables("Scores", {"": ROWS}, COLUMNS, 131))) == 1
    assert len(list(fitting_tables("Scores", {"": ROWS}, COLUMNS, 130))) == 2
    (labels,) = fitting_tables("Scores", {"arm": ROWS}, {}, 80)
    assert headers(labels) == ["arm"]


@pytest.mark.parametrize("width", [35, 80, 131, 400])
def test_table_prints_all_labels_and_numbers(width: int) -> None:
    shown = printed(width, COLUMNS)
    assert "…" not in shown
    for name, cells in COLUMNS.items():
        assert shown.count(name) == 1
        assert shown.count(cells[0]) == 2
    assert max(map(len, shown.splitlines())) <= width


@given(st.integers(1, 200), st.lists(st.integers(1, 30), max_size=12))
def test_tables_contain_each_column_once(width: int, lengths: list[int]) -> None:
    columns = {f"{number}": ["x" * length] * 2 for number, length in enumerate(lengths)}
    tables = fitting_tables("Scores", {"": ROWS}, columns, width)
    assert [header for table in tables for header in headers(table)[1:]] == list(columns)
