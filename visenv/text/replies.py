r"""Finds the part of a reply that states the answer.

A reply may think before ``</think>``, and may state its answer in a box (``\boxed{B}``), in a tag
(``<answer>B</answer>``) or in a JSON object (``{"answer": "B"}``). The last box or tag counts.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from visenv.text.mentions import without_mentions
from visenv.text.normalize import canonical

_TAG = re.compile(r"<answer>((?:[^<]|<(?!/?answer>))*)</answer>", re.IGNORECASE)
_BOX = re.compile(r"\\f?boxed\s?\{")
_BRACES = re.compile(r"[{}]")
_FENCE = re.compile(r"\A```(?:json)?\s*(\{.*\})\s*```\Z", re.DOTALL | re.IGNORECASE)
_SPECIAL = re.compile(
    r"<\|[^|<>\s]{1,40}\|>|\A\s*<s>(?![^<]*</s>\s*\S)|</s>\s*\Z|<(?:bos|eos|pad|end)>|<end_of_(?:turn|utterance|text)>"
    r"|</?(?:ans|choice)>"
)
_CHECKED, _UNCHECKED = re.compile(r"\[[xX✓✔]\]\s?"), re.compile(r"\[ \]\s?|☐\s?")
_LONG_DASH = re.compile(r"\s?[—―]\s?")
_KEYS = (
    r"(?:final[_ ]?|overall[_ ]?|selected[_ ]?|correct[_ ]?|chosen[_ ]?)?"
    r"(?:answers?|choice|option|selection|letter|verdict|judge?ment|winner|preferred|better|best)"
)
_FIELD = re.compile(
    rf"""["']{_KEYS}["']\s*:\s*("(?:[^"\\]|\\.){{0,4000}}"|'[^']*'|\[[^\]]{{0,400}}\]|[^,{{}}\s\[]{{1,400}})""",
    re.IGNORECASE,
)


class Stated(NamedTuple):
    """Holds the part of a reply that states the answer.

    Attributes:
        text: The content of the last box or tag, or the value of the JSON object; the whole reply
            if it has none of them.
        contained: Whether there is a box, a tag or a JSON object.
        after: The text after the last box or tag.
    """

    text: str
    contained: bool = False
    after: str = ""


def stated(reply: str) -> Stated:
    """Return the part of a reply that states the answer, in canonical form.

    Characters that `visenv.text.mentions` uses are replaced, and long dashes get blanks, because
    they separate clauses.
    """
    said = _SPECIAL.sub("", without_mentions(reply).rpartition("</think>")[2])
    said = _UNCHECKED.sub("not ", _CHECKED.sub("", said))
    said = canonical(_LONG_DASH.sub(" - ", said)).strip()
    fields = _fields(said)
    if fields is not None:
        return Stated(fields, contained=True)
    last = max(_last_tag(said), _last_box(said))
    if last == _NOWHERE:
        return Stated(said)
    _, first, end, after = last
    return Stated(said[first:end], contained=True, after=said[after:])


_Place = tuple[int, int, int, int]
_NOWHERE: _Place = (-1, 0, 0, 0)
"""Beginning of a container, of its content, end of its content, and end of the container."""


def _last_tag(text: str) -> _Place:
    if "<" not in text:
        return _NOWHERE
    found = None
    for found in _TAG.finditer(text):  # noqa: B007 - the last match is used after the loop
        pass
    return _NOWHERE if found is None else (found.start(), found.start(1), found.end(1), found.end())


def _last_box(text: str) -> _Place:
    """Return the last box whose braces are closed; `_NOWHERE` if the last one is not closed."""
    opened = list(_BOX.finditer(text))
    if not opened:
        return _NOWHERE
    depth = 1
    for brace in _BRACES.finditer(text, opened[-1].end()):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return opened[-1].start(), opened[-1].end(), brace.start(), brace.end()
    return _NOWHERE


def _fields(text: str) -> str | None:
    """Return the values of the answer's keys in a JSON object, one a line; None without such a key.

    The object may be cut or in a fence.
    """
    fenced = _FENCE.match(text)
    text = fenced[1] if fenced else text
    if not text.startswith(("{", "```json")):
        return None
    values = [_value(found) for found in _FIELD.findall(text)]
    return "\n".join(dict.fromkeys(values)) if values else None


def _value(written: str) -> str:
    """Return a JSON value as text; a list as its items, with commas between them."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return written.strip("'")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
