"""Extracts points and anchors from a video trace by a model, in the schema of figure 10."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from visenv.grammar.points import MAX_LABEL, FrameNote, Point, SpanNote, TraceReferences
from visenv.scorers import Judge, ReplyError
from visenv.scorers.judge import fenced

_KEYS = ("spatiotemporal", "frame_level_temporal", "segment_level_temporal")


class TraceReader(Protocol):
    """Extracts the points, frames and spans to which a trace refers."""

    async def extract(self, trace: str) -> TraceReferences:
        """Return the points, frames and spans of a trace."""
        ...


@dataclass(frozen=True)
class Extractor:
    """Asks a model for the points, frames and spans to which a trace refers.

    Args:
        judge: A judge whose prompt has the field ``trace`` and whose parser is `read_extraction`.
    """

    judge: Judge[TraceReferences]

    async def extract(self, trace: str) -> TraceReferences:
        """Return the points, frames and spans of a trace, without descriptions that are not in it.

        Raises:
            ServiceError: If the model failed, or no reply could be read.
        """
        if not trace.strip():
            return TraceReferences()
        found = await self.judge.ask(trace=fenced(trace))
        return found._replace(
            frames=tuple(each for each in found.frames if each.description in trace),
            spans=tuple(each for each in found.spans if each.description in trace),
        )


def read_extraction(text: str) -> TraceReferences:
    """Read the JSON object of figure 10; drop duplicates, and count malformed points.

    Raises:
        ReplyError: If the text is not such an object.
    """
    body = text.rsplit("</think>", 1)[-1].strip()
    if body.startswith("```"):
        body = body.strip("`").removeprefix("json")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"expected one JSON object, got {body[:80]!r}") from error
    if not isinstance(found, dict) or set(found) != set(_KEYS):
        raise ReplyError(f"expected an object with the keys {_KEYS}, got {body[:80]!r}")
    points, frames, spans = ([_object(each) for each in _list(found[key])] for key in _KEYS)
    read = [_point(each) for each in points]
    kept = [point for point in read if point is not None]
    notes = [
        FrameNote(_whole(each.get("frame")), _number(each.get("time")), _text(each))
        for each in frames
    ]
    segments = [
        SpanNote(
            _whole(each.get("start_frame")),
            _whole(each.get("end_frame")),
            _number(each.get("start_time")),
            _number(each.get("end_time")),
            _text(each),
        )
        for each in spans
    ]
    return TraceReferences(
        tuple(dict.fromkeys(kept)),
        tuple(dict.fromkeys(notes)),
        tuple(dict.fromkeys(segments)),
        len(read) - len(kept),
    )


def _point(found: dict[str, Any]) -> Point | None:
    x, y, label = _number(found.get("x")), _number(found.get("y")), found.get("object")
    if x is None or y is None or not isinstance(label, str) or len(label) > MAX_LABEL:
        return None
    return Point(
        x, y, " ".join(label.split()), _whole(found.get("frame")), _number(found.get("time"))
    )


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ReplyError(f"expected a list under each key, got {value!r:.80}")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ReplyError(f"expected objects in the lists, got {value!r:.80}")
    return value


def _text(found: dict[str, Any]) -> str:
    description = found.get("description")
    if not isinstance(description, str) or not description.strip():
        raise ReplyError(f"expected a description in each item, got {description!r:.80}")
    return description


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None or number != int(number) else int(number)
