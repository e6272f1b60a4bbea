"""Rows that no pipeline step may stumble over."""

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
    """Return rows like a good one, with one value after the other replaced or missing."""
    spoiled = [{**row, key: value} for key in row for value in HOSTILE_VALUES]
    missing = [{each: row[each] for each in row if each != key} for key in row]
    return [*spoiled, *missing, {}]
