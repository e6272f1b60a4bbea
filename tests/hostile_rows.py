"""Makes malformed rows, on which no pipeline step may fail."""

from __future__ import annotations

from typing import Any

from visenv.curation.lines import Row

HOSTILE_VALUES: list[Any] = [
    None,
    "",
    "  ",
    7,
    True,
    ["a"],
    {"a": 1},
    "x" * 100_001,
    "\ud800 half a pair",
    "\0",
    "<question>\nq\n</question>",
    "]}',\"{[" * 50,
    "…" * 99,
]


def hostile(row: Row) -> list[Row]:
    """Return copies of a good row, each with one value replaced or missing."""
    spoiled = [{**row, key: value} for key in row for value in HOSTILE_VALUES]
    missing = [{each: row[each] for each in row if each != key} for key in row]
    return [*spoiled, *missing, {}]
