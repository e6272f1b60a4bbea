"""Rows about questions: what the steps read out of them."""

from __future__ import annotations

from typing import NamedTuple

from visenv.curation.lines import Row
from visenv.data.rows import text_of
from visenv.errors import DataError

MAX_CHARACTERS = 100_000
"""A longer text fails its row: comparing two of them takes time that grows with the square."""


class Question(NamedTuple):
    """A question, what it is about, and the response that is right.

    Attributes:
        text: What is asked.
        images: Paths of its images.
        response: The right response: a word, or a page.
    """

    text: str
    images: tuple[str, ...]
    response: str


def question_of(row: Row) -> Question:
    """The question of a row: ``question``, ``images`` (may be missing) and ``response``.

    Raises:
        DataError: If one of them is missing, of another type or too long.
    """
    return Question(short_text(row, "question"), images_of(row), short_text(row, "response"))


def short_text(row: Row, key: str) -> str:
    """The text under `key`.

    Raises:
        DataError: If there is none, or it is longer than `MAX_CHARACTERS`.
    """
    text = text_of(row, key)
    if len(text) > MAX_CHARACTERS:
        raise DataError(f"{key} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    return text


def images_of(row: Row) -> tuple[str, ...]:
    """The paths under ``images``; none where there is no such key.

    Raises:
        DataError: If it holds no list of paths.
    """
    images = row.get("images", [])
    if not isinstance(images, list) or not all(isinstance(path, str) for path in images):
        raise DataError(f"images must be a list of paths, got {images!r:.80}")
    return tuple(images)


def without(row: Row, *keys: str) -> Row:
    """The row but for these keys."""
    return {key: value for key, value in row.items() if key not in keys}
