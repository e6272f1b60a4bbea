"""Reads frame and time anchors in a video trace: "frame 6", "4.47 seconds", "[F1-F6 @ t=…]".

Every pattern has bounded repeats and is tried once at each position, so that reading takes time
linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
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
