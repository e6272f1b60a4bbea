"""Reads reasoning with points and time anchors, and an answer in a box (Argos, arXiv 2512.03438).

A turn is ``<think>…</think><answer>…</answer>``. The final answer is the last
``<|begin_of_box|>…<|end_of_box|>`` inside ``<answer>``, otherwise all of it. Points are written as
``<point x="12" y="34" alt="cup">cup</point>`` or ``<points x1="12" y1="34" x2=… alt="cups">``. A
tag may contain several points, and an index may continue in the next tag.

No text makes a function of this module raise, and all of them take time linear in the length of the
text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from visenv.grammar.anchors import Anchor, Nearest, number_at, read_anchors, sentences_of
from visenv.grammar.base import ParsedTurn
from visenv.grammar.blocks import TurnReader, answer_regex
from visenv.types import Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool

BOX_START, BOX_END = "<|begin_of_box|>", "<|end_of_box|>"
"""Markers of a final answer, which are plain text and not special tokens."""

MAX_LABEL = 256
"""Maximum number of characters of a label; a point with a longer label is malformed."""

_ATTRIBUTES = r"""((?:[^<>"'/]++|/(?!>)|"[^"<]*+"|'[^'<]*+')*+)"""
_WHOLE = re.compile(
    rf"<points?(?![\w-]){_ATTRIBUTES}(?:/>|>((?:[^<]++|<(?!/?points?(?![\w-])))*+)</points?\s{{0,8}}>)",
    re.IGNORECASE,
)
_OPENING = re.compile(r"<points?(?![\w-])", re.IGNORECASE)
_MARKUP = re.compile(rf"<points?(?![\w-]){_ATTRIBUTES}/?>|</points?\s{{0,8}}>", re.IGNORECASE)
_PLAIN = r"(\d{1,12}(?:\.\d{1,12})?)"
_SIMPLE = re.compile(rf"""\sx(\d{{0,6}})="{_PLAIN}" y\1="{_PLAIN}"(?: alt="([^"]*+)")?""")
"""Matches the attributes of almost every tag, four times faster than the general pattern."""

_ATTRIBUTE = re.compile(
    r"""([A-Za-z]{1,8})(\d{0,6})\s{0,8}=\s{0,8}(?:"([^"]*+)"|'([^']*+)'|([^\s"'/]++))"""
)
_COORDINATE = re.compile(r"[+-]?\d{1,12}(?:\.\d{0,12})?(?:[eE][+-]?\d{1,3})?")
_SHOWN = 1000
"""Maximum number of characters of a description."""


class Point(NamedTuple):
    """Represents a point as written, in the coordinates of the policy.

    Attributes:
        x: Distance from the left edge.
        y: Distance from the top edge.
        label: Name of the thing at the point.
        frame: Frame number, from 1, or None.
        time: Seconds, or None.
    """

    x: float
    y: float
    label: str
    frame: int | None = None
    time: float | None = None


class FrameNote(NamedTuple):
    """Describes a single frame or time; `description` is a substring of the trace."""

    frame: int | None
    time: float | None
    description: str


class SpanNote(NamedTuple):
    """Describes a span. A value that the trace does not state, such as an open end, is None."""

    start_frame: int | None
    end_frame: int | None
    start_time: float | None
    end_time: float | None
    description: str


class TraceReferences(NamedTuple):
    """Holds the points, frames and spans of a trace, without duplicates.

    Attributes:
        points: The points in order.
        frames: Descriptions of single frames without a point.
        spans: Descriptions of spans.
        dropped: The number of malformed points.
    """

    points: tuple[Point, ...] = ()
    frames: tuple[FrameNote, ...] = ()
    spans: tuple[SpanNote, ...] = ()
    dropped: int = 0


class PointsGrammar:
    """Reads turns that consist of a thought and an answer; the policy has no tools."""

    stop: tuple[str, ...] = ("</answer>",)
    result_prefix = "result_"

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn in time linear in its length; no text makes this method raise.

        Problem codes: ``no_action``, ``thought_unclosed``, ``answer_unclosed``,
        ``several_answers``.
        """
        turn = _TURNS.read(text)
        if turn.answer is None:
            return turn
        return turn._replace(answer=_split_answer(turn.answer)[1])

    def reasoning(self, text: str) -> str:
        """Return the thought, and the text inside ``<answer>`` before the final answer.

        The result is ``""`` if the turn is malformed. Text after the box with the final answer, and
        text outside of ``<think>`` and ``<answer>``, is omitted.
        """
        turn = _TURNS.read(text)
        if turn.answer is None:
            return ""
        said, _ = _split_answer(turn.answer)
        return "\n".join(part for part in (turn.thought or "", said) if part.strip())

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn. It is the inverse of `parse` for texts without tags."""
        head = "" if turn.thought is None else f"<think>{turn.thought}</think>"
        return head if turn.answer is None else f"{head}<answer>{turn.answer}</answer>"

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return the parts without changes, because there are no tools."""
        return tuple(parts)

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return an error message that begins with ``Error:``."""
        return (f"Error: {message}",)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return a description of the format of a turn."""
        return (
            "Reason inside <think></think> tags, then give your final answer inside "
            "<answer></answer> tags."
        )

    def answer_regex(self, prefix: str) -> str:
        """Return a pattern of a thought and an answer; see `visenv.grammar.blocks.answer_regex`."""
        return answer_regex(prefix)


def read_references(text: str, *, video: bool = False) -> TraceReferences:
    """Return the points of a trace, and for a video its frames and spans.

    A point belongs to the closest single frame or time in its clause or sentence, otherwise in the
    last clause of the previous sentence.

    Args:
        text: The trace, see `PointsGrammar.reasoning`.
        video: Whether anchors are read.
    """
    tags, dropped = _read_tags(text)
    if not video:
        points = dict.fromkeys(point for _, _, found in tags for point in found)
        return TraceReferences(tuple(points), dropped=dropped)
    masked = _blank(text, tags)
    sentences = sentences_of(masked)
    anchors = read_anchors(masked)
    single = [anchor for anchor in anchors if not anchor.is_span]
    used: set[int] = set()
    placed: dict[Point, None] = {}
    nearest = Nearest(masked, sentences, single) if single else None
    for start, end, found in tags:
        place = nearest.to(start, end) if nearest else None
        if place is not None:
            used.add(place)
        anchor = None if place is None else single[place]
        for point in found:
            placed[_at(point, anchor)] = None
    said = [text[low:high].strip()[:_SHOWN] for low, high in sentences]
    notes = dict.fromkeys(
        FrameNote(each.frames[0], each.times[0], said[number_at(sentences, each.start)])
        for number, each in enumerate(single)
        if number not in used
    )
    spans = dict.fromkeys(
        SpanNote(*each.frames, *each.times, said[number_at(sentences, each.start)])
        for each in anchors
        if each.is_span
    )
    return TraceReferences(tuple(placed), tuple(notes), tuple(spans), dropped)


def without_tags(text: str) -> str:
    """Return a trace without the markup of its points; their inner texts stay."""
    return _MARKUP.sub("", text)


def blank_points(text: str) -> str:
    """Return a trace with blanks in place of its points and of their inner texts.

    The result has the same length as the trace, so that positions are the same in both.
    """
    return _blank(text, _read_tags(text)[0])


# ------------------------------------------------------------------------------------- answers


def _split_answer(body: str) -> tuple[str, str]:
    """Return the text inside ``<answer>`` before the final answer, and the final answer."""
    end = body.rfind(BOX_END)
    start = body.rfind(BOX_START, 0, end) if end >= 0 else -1
    if start < 0:
        return "", body.strip()
    return body[:start], body[start + len(BOX_START) : end].strip()


# -------------------------------------------------------------------------------------- points

_Tag = tuple[int, int, list[Point]]


def _read_tags(text: str) -> tuple[list[_Tag], int]:
    """Return each tag with its points, start and end, and the number of dropped tags."""
    tags: list[_Tag] = []
    dropped = 0
    for whole in _WHOLE.finditer(text):
        attributes, inner = whole.groups()
        points, bad = _read_points(attributes, inner or "")
        dropped += bad
        tags.append((*whole.span(), points))
    # A tag that is never closed, or that contains the start of another one, is dropped.
    return tags, dropped + len(_OPENING.findall(text)) - len(tags)


def _read_points(attributes: str, inner: str) -> tuple[list[Point], int]:
    simple = _SIMPLE.fullmatch(attributes)
    if simple is not None:
        _, x_text, y_text, alt = simple.groups()
        label = " ".join(inner.split()) or " ".join((alt or "").split())
        if len(label) <= MAX_LABEL:
            return [Point(float(x_text), float(y_text), label)], 0
        return [], 1
    values: dict[tuple[str, str], str] = {}
    repeated: set[str] = set()
    for found in _ATTRIBUTE.finditer(attributes):
        key = found[1].lower(), found[2]
        if key in values:
            repeated.add(found[2])
        values[key] = found[3] or found[4] or found[5] or ""
    label = " ".join(inner.split()) or " ".join(values.get(("alt", ""), "").split())
    numbers = dict.fromkeys(number for name, number in values if name in ("x", "y"))
    points: list[Point] = []
    for number in numbers:
        x = _coordinate(values.get(("x", number)))
        y = _coordinate(values.get(("y", number)))
        if x is not None and y is not None and number not in repeated and len(label) <= MAX_LABEL:
            points.append(Point(x, y, label))
    return points, max(1, len(numbers)) - len(points)


def _coordinate(text: str | None) -> float | None:
    if text is None:
        return None
    text = text.strip()  # `float` does not accept all white space that `strip` removes
    if _COORDINATE.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


# ------------------------------------------------------------------------------------- places


def _blank(text: str, tags: list[_Tag]) -> str:
    """Return the text with blanks in place of tags, whose numbers must not be read as anchors."""
    pieces: list[str] = []
    place = 0
    for start, end, _ in tags:
        pieces += [text[place:start], " " * (end - start)]
        place = end
    return "".join(pieces) + text[place:]


def _at(point: Point, anchor: Anchor | None) -> Point:
    if anchor is None:
        return point
    return point._replace(frame=anchor.frames[0], time=anchor.times[0])


_TURNS = TurnReader({})
