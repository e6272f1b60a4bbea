"""Reads questions from rows."""

from __future__ import annotations

import re
from typing import NamedTuple

from visenv.curation.lines import Row
from visenv.curation.writer import MAX_CHARACTERS
from visenv.data.rows import text_of
from visenv.errors import DataError

_OPTION = re.compile(r"^\(([A-Z])\)[ \t]*(\S.*)$", re.MULTILINE)


class QuestionRow(NamedTuple):
    """Holds a question, its images, and the right response.

    Attributes:
        text: The question.
        images: Paths of its images, and of the pages of its document that contain the answer.
        response: The right response, of any length.
    """

    text: str
    images: tuple[str, ...]
    response: str


def question_of(row: Row) -> QuestionRow:
    """Return a row's ``question`` and ``response``, and ``images`` and ``evidence`` if any.

    A question with lettered options becomes an open one without the options; its response is the
    text of the right option.

    Raises:
        DataError: If one of them is missing, of another type or too long.
    """
    text, response = opened(short_text(row, "question"), short_text(row, "response"))
    return QuestionRow(text, (*images_of(row), *images_of(row, "evidence")), response)


def opened(question: str, response: str) -> tuple[str, str]:
    """Return a question without its lettered options, and the text of the option that is right.

    If the question has no such options, or the response is none of their letters, neither changes.
    """
    options = dict(_OPTION.findall(question))
    letter = response.strip().strip("().")
    if letter not in options:
        return question, response
    first = _OPTION.search(question)
    asked = question[: first.start()].strip() if first else ""
    return (asked, options[letter].strip()) if asked else (question, response)


def short_text(row: Row, key: str) -> str:
    """Return the text under `key`.

    Raises:
        DataError: If it is missing, or it is longer than `MAX_CHARACTERS`.
    """
    text = text_of(row, key)
    if len(text) > MAX_CHARACTERS:
        raise DataError(f"{key} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    return text


def images_of(row: Row, key: str = "images") -> tuple[str, ...]:
    """Return the paths under `key`; empty if the key is missing.

    Raises:
        DataError: If the value is not a list of paths.
    """
    images = row.get(key, [])
    if not isinstance(images, list) or not all(isinstance(path, str) for path in images):
        raise DataError(f"{key} must be a list of paths, got {images!r:.80}")
    return tuple(images)


def without(row: Row, *keys: str) -> Row:
    """Return the row without these keys."""
    return {key: value for key, value in row.items() if key not in keys}
