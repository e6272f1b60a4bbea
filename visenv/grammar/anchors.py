"""Reads frame and time anchors in a video trace, and assigns points to times.

Every pattern has bounded repeats and is tried once at each position. All functions take time linear
in the length of the text, except for a binary search for each tag.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice, pairwise
from operator import itemgetter
from typing import NamedTuple

_NUMBER = r"\d{1,7}(?:\.\d{1,6})?(?![\d.]*\d)"

_SECONDS = r"\s{0,2}(?:seconds?|secs?|s)\b"

_TO = r"\s{0,2}(?:-|–|—|to|through|thru|until|till)\s{0,2}"

_ITEM = re.compile(
    r"(?<![A-Za-z0-9])F(-?\d{1,7})(?:\s?[-–]\s?F?(\d{1,7}))?\s?@\s?t\s?=\s?"
    rf"(?:({_NUMBER})s?(?:\s?[-–]\s?({_NUMBER})s?)?)?"
)

_FRAME = re.compile(r"\bframe(s?)\s{1,3}(-?\d{1,7})\b(?!\.\d)", re.IGNORECASE)

_TIMES = re.compile(
    rf"(?<![\w.])(?:(?<=between )({_NUMBER})(?:{_SECONDS})?"
    rf"\s{{0,2}}and\s{{0,2}}({_NUMBER}){_SECONDS}"
    rf"|({_NUMBER})(?:{_SECONDS})?{_TO}({_NUMBER}){_SECONDS}"
    rf"|(?<!for )({_NUMBER}){_SECONDS})",
    re.IGNORECASE,
)

# The pattern begins with a character set, which `re` searches several times faster than
# alternatives.
_START = re.compile(
    r"[Ff\d](?:(?<=(?<![\w.])\d)|(?<=[Ff])(?=-?\d)|(?<=\b[Ff])(?=[Rr][Aa][Mm][Ee]))"
)

_AT_TIME = re.compile(
    rf"[\s,]{{0,2}}(?:at|\(|@)?\s{{0,2}}(?:t\s?=\s?)?({_NUMBER}){_SECONDS}\)?", re.IGNORECASE
)

_TO_FRAME = re.compile(
    rf"{_TO}(?:frames?\s{{1,2}})?(\d{{1,7}})\b(?!\.\d|{_SECONDS})", re.IGNORECASE
)

_NEXT_FRAME = re.compile(
    rf"\s{{0,2}}(?:,\s{{0,2}}and|,|and)\s{{0,2}}(\d{{1,7}})\b(?!\.\d|{_SECONDS})", re.IGNORECASE
)

_ONWARD = re.compile(r"\s{0,2}(?:and\s)?(?:onwards?|beyond|to the end)\b", re.IGNORECASE)

MOST_ANCHORS = 2_000
"""Maximum number of anchors that are read; the text after them has none."""

Spans = list[tuple[int, int]]
"""The start and the end of each piece of a text, in order."""

# The match of a run of marks starts only at its first mark. Otherwise a long run without a blank
# after it would be tried again at each of its marks, in quadratic time. Both patterns begin with a
# character set, which `re` searches several times faster than alternatives.
_SENTENCE_END = re.compile(r"[.!?\n](?:(?<=(?<![.!?])[.!?])[.!?]*+(?=\s|$)|(?<=\n)\n*)")

_CLAUSE_END = re.compile(
    r"[,;:awtb](?:(?<=[,;:])|(?:(?<=\sa)nd|(?<=\sw)hile|(?<=\st)hen|(?<=\sb)ut)(?=\s))"
)


class Anchor(NamedTuple):
    """Represents a frame, a time or a span, as written in the text.

    Attributes:
        start: Index of its first character in the text.
        end: Index after its last character in the text.
        frames: First and last frame number, from 1; None if not stated.
        times: First and last time in seconds; None if not stated.
        is_span: Whether it is a span. The end of an open span is None.
    """

    start: int
    end: int
    frames: tuple[int | None, int | None]
    times: tuple[float | None, float | None]
    is_span: bool


def read_anchors(text: str) -> list[Anchor]:
    """Return the first `MOST_ANCHORS` anchors of a text, in time linear in its length.

    No text makes it raise.
    """
    anchors: list[Anchor] = []
    place = 0
    while len(anchors) < MOST_ANCHORS and (found := _START.search(text, place)) is not None:
        read = list(islice(_read_at(text, found.start()), MOST_ANCHORS - len(anchors)))
        anchors += read
        place = max(read[-1].end if read else 0, found.start() + 1)
    return anchors


def _read_at(text: str, place: int) -> Iterator[Anchor]:
    if item := _ITEM.match(text, place):
        first, last, start, end = item.groups()
        is_span = last is not None
        frames = (int(first), int(last or first))
        times = (_float(start), _float(end) if is_span else _float(start))
        yield Anchor(place, item.end(), frames, times, is_span)
    elif frame := _FRAME.match(text, place):
        yield from _read_frames(text, frame)
    elif times_found := _TIMES.match(text, place):
        yield _read_times(text, times_found)


def _read_frames(text: str, found: re.Match[str]) -> Iterator[Anchor]:
    first, place = int(found[2]), found.end()
    time, place = _time_at(text, place)
    if last := _TO_FRAME.match(text, place):
        end_time, place = _time_at(text, last.end())
        yield Anchor(found.start(), place, (first, int(last[1])), (time, end_time), True)
        return
    if onward := _ONWARD.match(text, place):
        yield Anchor(found.start(), onward.end(), (first, None), (time, None), True)
        return
    yield Anchor(found.start(), place, (first, first), (time, time), False)
    while found[1] and (another := _NEXT_FRAME.match(text, place)):  # "frames 2, 3 and 5"
        frame, place = int(another[1]), another.end()
        yield Anchor(another.start(1), place, (frame, frame), (None, None), False)


def _read_times(text: str, found: re.Match[str]) -> Anchor:
    groups = [float(each) for each in found.groups() if each is not None]
    if len(groups) == 2:
        return Anchor(found.start(), found.end(), (None, None), (groups[0], groups[1]), True)
    if onward := _ONWARD.match(text, found.end()):
        return Anchor(found.start(), onward.end(), (None, None), (groups[0], None), True)
    return Anchor(found.start(), found.end(), (None, None), (groups[0], groups[0]), False)


def _time_at(text: str, place: int) -> tuple[float | None, int]:
    found = _AT_TIME.match(text, place)
    return (float(found[1]), found.end()) if found else (None, place)


def _float(text: str | None) -> float | None:
    return None if text is None else float(text)


class Nearest:
    """Finds the anchor to which a tag belongs.

    The anchor is the closest one in the tag's clause, otherwise in its sentence, otherwise in the
    last clause of the previous sentence. Characters alone do not suffice: in "in frame 2 the cup is
    at A and in frame 5 at B", frame 5 is the closest anchor to A in characters.

    Args:
        masked: The trace with blanks in place of tags.
        sentences: The sentences of the trace, see `sentences_of`.
        single: The anchors of single frames and times, in order.
    """

    def __init__(self, masked: str, sentences: Spans, single: list[Anchor]) -> None:
        self._sentences = sentences
        self._clauses = _clauses(masked, sentences)
        self._single = single
        self._anchor_starts = [anchor.start for anchor in single]

    def to(self, start: int, end: int) -> int | None:
        """Return the index of the anchor of a tag, or None."""
        sentence = number_at(self._sentences, start)
        clause = number_at(self._clauses, start)
        low, high = self._sentences[sentence]
        place = self._closest(*self._clauses[clause], start, end)
        if place is None:
            place = self._closest(low, high, start, end)
        if place is None and sentence:
            before = number_at(self._clauses, low - 1)
            place = self._closest(*self._clauses[before], start, end)
        return place

    def _closest(self, low: int, high: int, start: int, end: int) -> int | None:
        first = bisect_left(self._anchor_starts, low)
        last = bisect_left(self._anchor_starts, high)
        right = bisect_left(self._anchor_starts, end, first, last)
        around = [place for place in (right - 1, right) if first <= place < last]
        return min(around, key=lambda place: self._distance(place, start, end), default=None)

    def _distance(self, place: int, start: int, end: int) -> int:
        anchor = self._single[place]
        return start - anchor.end if anchor.end <= start else anchor.start - end


def sentences_of(masked: str) -> Spans:
    """Return the start and the end of each sentence; the sentences together cover the text."""
    ends = [found.end() for found in _SENTENCE_END.finditer(masked)]
    spans: Spans = []
    for end in (*ends, len(masked)):
        start = spans[-1][1] if spans else 0
        if masked[start:end].strip() or not spans:
            spans.append((start, end))
        else:  # blanks and marks belong to the previous sentence
            spans[-1] = (spans[-1][0], end)
    return spans


def number_at(spans: Spans, place: int) -> int:
    """Return the index of the piece that contains a position."""
    return max(bisect_right(spans, place, key=itemgetter(0)) - 1, 0)


def _clauses(masked: str, sentences: Spans) -> Spans:
    spans: Spans = []
    for start, end in sentences:
        cuts = [found.start() for found in _CLAUSE_END.finditer(masked, start, end)]
        edges = [start, *cuts, end]
        spans += [(low, high) for low, high in pairwise(edges) if low < high]
    return spans
