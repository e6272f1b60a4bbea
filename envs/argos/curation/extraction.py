"""Extracts the points and times that a trace cites, with their descriptions (figures 8 and 9)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.data.rows import text_of
from visenv.errors import DataError
from visenv.grammar.anchors import Anchor, read_anchors
from visenv.grammar.points import MAX_LABEL, FrameNote, Point, SpanNote, TraceReferences
from visenv.scorers import Judge, ReplyError, Scorer

from . import prompts
from .rows import is_number, times_of_row

VIDEO_LISTS = {"observations": "description", "events": "event", "points": "object"}
"""The lists of figure 9, with the key of the description in their items."""

CITED = re.compile(
    r"[(\[]\s{0,4}(\d{1,9}(?:\.\d{1,6})?)\s{0,4},\s{0,4}(\d{1,9}(?:\.\d{1,6})?)\s{0,4}[)\]]"
)
"""Matches a point in a trace: ``(x, y)`` or ``[x, y]``."""

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_FRAME = re.compile(r"F?(\d{1,7})")
_SECONDS = re.compile(r"(\d{1,7}(?:\.\d{1,6})?)\s?s?")
_MAX_TOKENS = 8192
_MAX_ANCHOR = 2000
"""Maximum length of an anchor, which may list 32 frames."""


@dataclass(eq=False)
class ExtractReferences(CurationStep):
    """Adds ``extraction`` to each row: the lists of figure 8 (images) or of figure 9 (videos).

    An invalid reply is requested again, up to three times in total. Repeated items, and items
    whose point or ``anchor_text`` is not in the trace, are removed.
    """

    name: ClassVar[str] = "argos-extract"

    scorer: Scorer

    @override
    def settings(self) -> dict[str, Any]:
        """Return the scorer, without its address and other connection settings."""
        return {"scorer": self.scorer.name}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        trace = text_of(row, "trace")
        if times_of_row(row):
            judge = Judge(
                self.scorer, prompts.EXTRACT_VIDEO, read_video_items, max_tokens=_MAX_TOKENS
            )
            lists = await judge.ask(trace=trace)
        else:
            image_judge = Judge(
                self.scorer, prompts.EXTRACT_IMAGE, read_image_items, max_tokens=_MAX_TOKENS
            )
            lists = {"points": await image_judge.ask(trace=trace)}
        written = {name: _written(items, trace) for name, items in lists.items()}
        left_out = sum(map(len, lists.values())) - sum(map(len, written.values()))
        return kept({**row, "extraction": written}, left_out=left_out)


def read_image_items(text: str) -> list[dict[str, Any]]:
    """Return the items of figure 8: ``[{"point": [x, y], "object": "…"}]``.

    Raises:
        ReplyError: If the reply has another form.
    """
    items = _objects(_json(text))
    for item in items:
        if {*item} != {"point", "object"}:
            raise ReplyError(f"expected the keys point and object, got {sorted(item)!r:.80}")
        if not _is_point(item["point"]):
            raise ReplyError(f"expected a point [x, y], got {item['point']!r:.80}")
        _check_text(item, "object")
    return items


def read_video_items(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the three lists of figure 9, whose items have an ``anchor_text`` and a description.

    Raises:
        ReplyError: If the reply has another form.
    """
    found = _json(text)
    if not isinstance(found, dict) or {*found} != {*VIDEO_LISTS}:
        raise ReplyError(f"expected one JSON object with the keys {sorted(VIDEO_LISTS)}")
    lists = {name: _objects(found[name]) for name in VIDEO_LISTS}
    for name, said in VIDEO_LISTS.items():
        for item in lists[name]:
            _check_text(item, "anchor_text", _MAX_ANCHOR)
            _check_text(item, said)
    return lists


def references_of(row: Row) -> TraceReferences:
    """Return the references of a row's extraction, in the form that the verifier needs.

    Points, frames and times are parsed from ``anchor_text``, which is a part of the trace; the
    other fields of an item are descriptions. A point without a frame in its anchor gets the frame
    and the time of its item.

    Raises:
        DataError: If the row contains no extraction.
    """
    extraction = row.get("extraction")
    if not isinstance(extraction, Mapping):
        raise DataError(f"no extraction: {extraction!r:.80}")
    try:
        if {*extraction} == {"points"}:
            items = read_image_items(json.dumps(extraction["points"]))
            return TraceReferences(tuple(dict.fromkeys(map(_image_point, items))))
        lists = read_video_items(json.dumps(extraction))
    except (ReplyError, TypeError, ValueError) as error:
        raise DataError(f"no extraction: {error}") from error
    observed = [_observation(item) for item in lists["observations"]]
    points = [_placed_point(item) for item in lists["points"]]
    spans = [_span(item) for item in lists["events"]]
    return TraceReferences(
        tuple(dict.fromkeys(each for each in (*points, *observed) if isinstance(each, Point))),
        tuple(dict.fromkeys(each for each in observed if isinstance(each, FrameNote))),
        tuple(dict.fromkeys(each for each in spans if each is not None)),
    )


# --------------------------------------------------------------------------------- one item


def _image_point(item: Mapping[str, Any]) -> Point:
    x, y = item["point"]
    return Point(float(x), float(y), _name(item["object"]))


def _placed_point(item: Mapping[str, Any]) -> Point | None:
    """Return a point with its frame; None if the anchor text has another form."""
    cited, anchors = _read_anchor(item)
    if cited is None or len(anchors) != 1 or anchors[0].is_span:
        return None
    return Point(*cited, _name(item["object"]), anchors[0].frames[0], anchors[0].times[0])


def _observation(item: Mapping[str, Any]) -> Point | FrameNote | None:
    """Return a frame with its description, or a point without one."""
    cited, anchors = _read_anchor(item)
    if cited is not None and not anchors:
        said = item.get("object")
        label = said if isinstance(said, str) and said.strip() else item["description"]
        frame, time = _number(_FRAME, item.get("frame")), _number(_SECONDS, item.get("time_s"))
        return Point(*cited, _name(label), None if frame is None else int(frame), time)
    if cited is None and len(anchors) == 1 and not anchors[0].is_span:
        return FrameNote(anchors[0].frames[0], anchors[0].times[0], item["description"])
    return None


def _span(item: Mapping[str, Any]) -> SpanNote | None:
    """Return a span with its description; a list of frames spans from its first to its last."""
    cited, anchors = _read_anchor(item)
    if cited is not None or not anchors or (len(anchors) == 1 and not anchors[0].is_span):
        return None
    first, last = anchors[0], anchors[-1]
    frames, times = (first.frames[0], last.frames[1]), (first.times[0], last.times[1])
    return SpanNote(*frames, *times, item["event"])


def _read_anchor(item: Mapping[str, Any]) -> tuple[tuple[float, float] | None, list[Anchor]]:
    text = item["anchor_text"]
    cited = CITED.search(text)
    return (float(cited[1]), float(cited[2])) if cited else None, read_anchors(text)


def _number(pattern: re.Pattern[str], value: object) -> float | None:
    found = pattern.fullmatch(str(value).strip()) if isinstance(value, (int, float, str)) else None
    return None if found is None else float(found[1])


def _name(text: str) -> str:
    return " ".join(text.split())


# ----------------------------------------------------------------------------------- replies


def _written(items: Sequence[dict[str, Any]], trace: str) -> list[dict[str, Any]]:
    """Return the distinct items whose references are in the trace."""
    cited = {(float(x), float(y)) for x, y in CITED.findall(trace)}
    distinct: dict[str, dict[str, Any]] = {}
    for item in items:
        anchor = item.get("anchor_text")
        if anchor in trace if isinstance(anchor, str) else tuple(item["point"]) in cited:
            distinct.setdefault(json.dumps(item, sort_keys=True), item)
    return list(distinct.values())


def _json(text: str) -> Any:
    """Parse the JSON value of a reply, which may follow a thought and be inside a fence."""
    said = text.rpartition("</think>")[2].strip()
    fenced = _FENCE.fullmatch(said)
    try:
        return json.loads(fenced[1] if fenced else said)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"not JSON: {error}") from error


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ReplyError(f"expected a list of objects, got {value!r:.80}")
    return value


def _is_point(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def _check_text(item: Mapping[str, Any], key: str, longest: int = MAX_LABEL) -> None:
    text = item.get(key)
    if not isinstance(text, str) or not text.strip() or len(text) > longest:
        raise ReplyError(f"expected a short text under {key!r}, got {text!r:.80}")
