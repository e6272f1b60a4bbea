"""Bounds the size of JSON, because policies and data sets may contain long texts, or NaN."""

from __future__ import annotations

from typing import Any

LONGEST_TEXT = 20_000
"""Most characters of one text on the page; the page shows how many more there are."""

DEEPEST = 16
"""Most levels of nested data on the page."""

LARGEST, SMALLEST = 1e300, 1e-300
"""Limits of the size of a number on the page. The page computes with differences and quotients of
numbers, and a chart of larger ones would have no ends."""


def bounded(value: Any, depth: int = 0) -> Any:
    """Return the value with None for NaN and infinity, and with bounded texts and nesting.

    Numbers beyond `LARGEST` become None, and those below `SMALLEST` 0.
    """
    if depth > DEEPEST:
        return "…"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _bounded_number(value)
    if isinstance(value, str):
        more = len(value) - LONGEST_TEXT
        return value if more <= 0 else f"{value[:LONGEST_TEXT]}… [{more} more characters]"
    if isinstance(value, dict):
        return {bounded(str(key)): bounded(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [bounded(each, depth + 1) for each in value]
    return value


def _bounded_number(value: float) -> float | None:
    if not abs(value) < LARGEST:  # also for NaN
        return None
    return 0 if abs(value) < SMALLEST else value
