"""Writes the error message for an unknown document."""

from __future__ import annotations

from collections.abc import Collection

from rapidfuzz import process

_LISTED = 5
_CHARACTERS = 80


def unknown_document(name: str, known: Collection[str]) -> str:
    """Return a sentence with the names of the nearest documents, or of some other documents.

    Args:
        name: The requested name: any text, of any length.
        known: The existing names.
    """
    cut = name[:_CHARACTERS]
    shown = ascii(cut) + ("…" if len(name) > _CHARACTERS else "")
    near = process.extract(cut, list(known), limit=_LISTED, score_cutoff=50)
    if near:
        hint = f"Did you mean {' or '.join(ascii(found) for found, _, _ in near)}?"
    else:
        there = ", ".join(map(ascii, sorted(known)[:_LISTED])) or "none"
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        hint = f"Documents: {there}{more}."
    return f"There is no document called {shown}. {hint}"
