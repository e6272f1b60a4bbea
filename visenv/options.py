"""Reads options in names such as ``textvqa:<folder>?split=val`` or ``openai:gpt-4o?timeout=30``."""

from __future__ import annotations

import os
from urllib.parse import parse_qsl

from visenv.errors import ConfigurationError

_LONGEST_PATH = 4096


def split_place(text: str) -> tuple[str, str]:
    """Split ``<place>?<options>``; a file or folder that exists may have ``?`` in its name."""
    marks = [place for place, each in enumerate(text[:_LONGEST_PATH]) if each == "?"]
    if not marks:
        return text, ""
    if "\0" not in text:
        for end in (*marks[1:], len(text))[::-1]:
            if end <= _LONGEST_PATH and os.path.exists(text[:end]):  # noqa: PTH110 - any text
                return text[:end], text[end + 1 :]
    return text[: marks[0]], text[marks[0] + 1 :]


def read_options(query: str, what: str) -> dict[str, str]:
    """Return the options after the question mark of a name.

    Args:
        query: ``option=value&option=value``, percent-encoded where needed; it may be empty.
        what: The object that has the options, as it is called in error messages, for example ``"a
            data set"``.

    Raises:
        ConfigurationError: If the text is not of this form.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise ConfigurationError(
            f"Options of {what} are option=value&option=value, got {query!r}."
        ) from error
    return dict(pairs)
