"""Rows about questions: what the steps read out of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from visenv.curation.lines import Row
from visenv.data.rows import text_of
from visenv.errors import DataError

_OPTION = re.compile(r"^\(([A-Z])\)[ \t]*(\S.*)$", re.MULTILINE)

MAX_CHARACTERS = 100_000
"""A longer text fails its row: comparing two of them takes time that grows with the square."""


class QuestionRow(NamedTuple):
    """A question, what it is about, and the response that is right.

    Attributes:
        text: What is asked.
        images: Paths of its images, and of the pages of its document that hold the answer.
        response: The right response: a word, or a page.
    """

    text: str
    images: tuple[str, ...]
    response: str


def question_of(row: Row) -> QuestionRow:
    """Return a row's ``question`` and ``response``, and ``images`` and ``evidence`` if any.

    A question with lettered options becomes an open one: its response is the text of the right
    option, and the options go.

    Raises:
        DataError: If one of them is missing, of another type or too long.
    """
    text, response = opened(short_text(row, "question"), short_text(row, "response"))
    return QuestionRow(text, (*images_of(row), *images_of(row, "evidence")), response)


def opened(question: str, response: str) -> tuple[str, str]:
    """Return a question without its lettered options, and the option that the response names.

    A question without such options, and a response that is none of their letters, stay as they are.
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
        DataError: If there is none, or it is longer than `MAX_CHARACTERS`.
    """
    text = text_of(row, key)
    if len(text) > MAX_CHARACTERS:
        raise DataError(f"{key} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    return text


def images_of(row: Row, key: str = "images") -> tuple[str, ...]:
    """Return the paths under `key`; none where there is no such key.

    Raises:
        DataError: If it holds no list of paths.
    """
    images = row.get(key, [])
    if not isinstance(images, list) or not all(isinstance(path, str) for path in images):
        raise DataError(f"{key} must be a list of paths, got {images!r:.80}")
    return tuple(images)


def without(row: Row, *keys: str) -> Row:
    """Return the row without these keys."""
    return {key: value for key, value in row.items() if key not in keys}
