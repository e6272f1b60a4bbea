"""JSON of bounded size: what a policy or a data set wrote may be endless, or not finite."""

from __future__ import annotations

import math
from typing import Any

LONGEST_TEXT = 20_000
"""Characters of one text on the page; of a longer one, the rest is counted."""

DEEPEST = 16
"""Levels of nested data on the page."""


def bounded(value: Any, depth: int = 0) -> Any:
    """Return the value without NaN and infinity (None), endless texts and endless nesting."""
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
