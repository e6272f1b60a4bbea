"""Bounds the size of JSON, because policies and data sets may contain long texts, or NaN."""

from __future__ import annotations

import math
from typing import Any

LONGEST_TEXT = 20_000
"""Most characters of one text on the page; the page shows how many more there are."""

DEEPEST = 16
"""Most levels of nested data on the page."""


def bounded(value: Any, depth: int = 0) -> Any:
    """Return the value with None for NaN and infinity, and with bounded texts and nesting."""
    if depth > DEEPEST:
        return "…"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        more = len(value) - LONGEST_TEXT
        return value if more <= 0 else f"{value[:LONGEST_TEXT]}… [{more} more characters]"
    if isinstance(value, dict):
        return {str(key): bounded(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [bounded(each, depth + 1) for each in value]
    return value
