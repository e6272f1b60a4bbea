"""Makes text of others, such as passages, pages, tracebacks and errors, safe to show to a policy.

The author of a web page controls a part of the results of a search tool. Such a text must not close
the block that contains it, open another block, or change the appearance of the text around it
(finding C4). `VisEnv` applies `neutralized` to the results and errors of all tools.
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
"""Tags of all grammars, and of the prompts that are rebuilt every turn."""

_OPENING = "‹"
_BRACKETS = "<\ufe64\uff1c"
_JOINERS = "\u200c\u200d"
_TAG = re.compile(rf"[{_BRACKETS}](?=[\s/{_JOINERS}]*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
_HIDDEN = re.compile(
    # Control characters except tab and line feed, surrogates, line and paragraph separators
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029"
    # Characters without width, characters that change the text direction, annotations, Unicode tags
    "\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
    # Joiners after an ASCII character; some scripts need joiners elsewhere
    f"|(?<=[\x00-\x7f])[{_JOINERS}]"
)


def neutralized(text: str) -> str:
    r"""Return a text that contains no tag of a grammar and no invisible character.

    The ``<`` of a tag becomes ``‹``. An invisible character becomes its Python escape (``\x1b``,
    ``\u202e``). Line feeds, tabs and Windows line ends stay. The function takes time linear in the
    length of the text, never raises, and does not change a neutralized text.

    Args:
        text: Any text.
    """
    seen = _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))
    return _TAG.sub(_OPENING, seen)
