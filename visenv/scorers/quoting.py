"""Writes text of a policy into the prompt of a model, so that it cannot imitate the prompt.

Text of a policy is data. In a prompt it is one JSON string without line breaks (`quoted`), or, if a
model must copy from it, a block between two lines that the text cannot contain (`fenced`). Both
have a limit, because a judge reads the text at the expense of the person who runs it. The prompt
says that the text is data.
"""

from __future__ import annotations

import hashlib
import json
import re

LONGEST = 4_000
"""Maximum number of characters of a text that a judge reads; the rest is cut off."""

LONGEST_TRACE = 32_000
"""Maximum number of characters of a reasoning that a model reads or copies from."""

_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029]")


def quoted(text: str, longest: int = LONGEST) -> str:
    """Return a text as one JSON string in one line, cut to a number of characters.

    Line breaks and quotation marks are escaped, so that the text cannot end the string.
    """
    written = json.dumps(text[:longest], ensure_ascii=False)
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def fenced(text: str, longest: int = LONGEST_TRACE) -> str:
    """Return a text between two lines that are equal and depend on the text, cut to a length.

    A policy cannot write the line into its text, because the line contains the hash of the text.
    """
    cut = text[:longest]
    line = f"=== text {hashlib.sha256(cut.encode('utf-8', 'replace')).hexdigest()[:16]} ==="
    return f"{line}\n{cut}\n{line}"
