"""Assigns points to times: finds sentences and clauses of a trace, and the anchor of each tag.

All functions take time linear in the length of the text, except for a binary search for each tag.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import pairwise
from operator import itemgetter

from visenv.grammar.anchors import Anchor

Spans = list[tuple[int, int]]
"""The start and the end of each piece of a text, in order."""

# The match of a run of marks starts only at its first mark. Otherwise a long run without a blank
# after it would be tried again at each of its marks, in quadratic time. Both patterns begin with a
# character set, which `re` searches several times faster than alternatives.
_SENTENCE_END = re.compile(r"[.!?\n](?:(?<=(?<![.!?])[.!?])[.!?]*+(?=\s|$)|(?<=\n)\n*)")
_CLAUSE_END = re.compile(
    r"[,;:awtb](?:(?<=[,;:])|(?:(?<=\sa)nd|(?<=\sw)hile|(?<=\st)hen|(?<=\sb)ut)(?=\s))"
)


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
