"""Text from elsewhere, such as passages, pages, tracebacks and errors, as a policy may be shown it.

The author of a web page also writes what a search tool returns. Such a text must not end the block
it is shown in, begin another one, or change how the text around it looks (finding C4).
`VisEnv` applies `neutralized` to the results and errors of all tools.
"""

from __future__ import annotations

import re

TAGS = (
    "answer",
    "code",
    "image_name",
    "information",
    "problem",
    "result",
    "rethink",
    "search",
    "think",
    "tips",
    "tool",
    "tool_call",
    "tool_response",
    "tools",
    "query",
    "zoom",
)
"""The tags of all grammars, and of the prompts that are rebuilt every turn."""

_OPENING = "‹"
_BRACKETS = "<\ufe64\uff1c"
_JOINERS = "\u200c\u200d"
_TAG = re.compile(rf"[{_BRACKETS}](?=[\s/{_JOINERS}]*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
_HIDDEN = re.compile(
    # Controls but the tab and the line feed, surrogates, line and paragraph separators
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029"
    # What has no width, what turns text around, annotations, and the tags of Unicode
    "\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
    # Joiners, which some scripts need, after a character of none of these
    f"|(?<=[\x00-\x7f])[{_JOINERS}]"
)


def neutralized(text: str) -> str:
    r"""Return a text that holds no tag of a grammar and no character that is not seen.

    The ``<`` of a tag becomes ``‹``. A character that is not seen is written as Python writes it
    (``\x1b``, ``\u202e``); line feeds and tabs stay, and a line may end as on Windows. The function
    is linear in the length of the text, total, and returns a neutralized text as it is.

    Args:
        text: Any text.
    """
    seen = _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))
    return _TAG.sub(_OPENING, seen)
