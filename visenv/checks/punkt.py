"""Punkt, the sentence splitter of NLTK, on parameters that were learnt before.

Kiss and Strunk, "Unsupervised Multilingual Sentence Boundary Detection", 2006, §4.

Why not NLTK's own class: it decides the same (the tests compare the two on every kind of text), but
takes 40 times as long, gives up with a TimeoutError after five seconds of wall clock, remembers
every word it ever met, and importing it imports SciPy and scikit-learn where they are installed.

A full stop, question mark or exclamation mark *may* end a sentence where punctuation follows, or
blanks and another word. Question and exclamation marks then always do. A full stop does not after
an abbreviation, an initial ("J. Bach") or an ordinal before a lower-case word ("the 5. of May"),
unless the next word says otherwise.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

_CLOSING = "\"')\\]}‘’“”«»"
_NON_WORD = f"[{_CLOSING};*:@({{\\[?!]"
_RUN = r"-{2,}|\.{2,}|(?:\.\s){2,}\."

_CANDIDATE = re.compile(rf"[.?!](?={_NON_WORD}|\s+(\S+))")
_TRAILING = re.compile(rf"[{_CLOSING}]+?(?:\s+|(?=--)|$)", re.MULTILINE)
_WORD = re.compile(
    rf"""{_RUN}
    | [^("`{{\[:;&\#*@)}}\]\-,\s]      # starts a word
      (?:(?!{_NON_WORD}|{_RUN}|,(?:$|\s|{_NON_WORD}|{_RUN}))\S)*
    | \S""",
    re.VERBOSE,
)
_MARKS = frozenset(";:,.!?")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")
_NUMBER_TYPE: Final = "##number##"

# Orthographic contexts, as `ortho_context.tab` counts them: how a word type was seen written at the
# beginning of, inside, and at an unknown place of sentences.
_BEGINS_UPPER, _INSIDE_UPPER, _UNKNOWN_UPPER, _BEGINS_LOWER, _INSIDE_LOWER, _UNKNOWN_LOWER = (
    1 << bit for bit in range(1, 7)
)
_UPPER = _BEGINS_UPPER | _INSIDE_UPPER | _UNKNOWN_UPPER
_LOWER = _BEGINS_LOWER | _INSIDE_LOWER | _UNKNOWN_LOWER


class PunktParameters(NamedTuple):
    """What Punkt learnt of a language; all words in lower case, without their final full stop.

    Attributes:
        abbreviations: Words that a full stop belongs to.
        collocations: Pairs of words that no sentence ends between; ``##number##`` is any number.
        starters: Words that often begin a sentence.
        orthography: Word -> bits that say how it was seen written.
    """

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    starters: frozenset[str]
    orthography: Mapping[str, int]


class Punkt:
    """Splits text into sentences, in linear time.

    Args:
        parameters: Of the language.
    """

    def __init__(self, parameters: PunktParameters) -> None:
        self._parameters = parameters
        paired = frozenset(first for first, _ in parameters.collocations)
        self._special = parameters.abbreviations | paired

    def split(self, text: str) -> list[str]:
        """The sentences of a text, in order, without the blanks between them."""
        slices = list(self._slices(text))
        return [text[start:stop] for start, stop in _with_closing_marks(text, slices)]

    def _slices(self, text: str) -> Iterator[tuple[int, int]]:
        start = 0
        for word_start, candidate in _candidates(text):
            if self._ends_sentence(text, word_start, candidate):
                yield start, candidate.end()
                start = candidate.start(1) if candidate[1] else candidate.end()
        yield start, len(text.rstrip())

    def _ends_sentence(self, text: str, word_start: int, candidate: re.Match[str]) -> bool:
        if candidate[0] != ".":
            return True
        word = text[word_start : candidate.start()]
        if len(word) > 1 and word.isalpha() and word.lower() not in self._special:
            return True  # what the steps below come to; most words are of this kind
        after = candidate.end(1) if candidate[1] else candidate.end() + 1
        return self._has_break(text[word_start:after])

    def _has_break(self, context: str) -> bool:
        """Whether a sentence ends in a word, its mark and what follows it."""
        words = [found[0] for line in context.split("\n") for found in _WORD.finditer(line)]
        return any(self._is_break(word, following) for word, following in pairwise(words))

    def _is_break(self, word: str, following: str) -> bool:
        if not word.endswith("."):
            return word in ("?", "!")
        is_break = self._is_break_by_itself(word)
        kind, next_kind = _kind(word).removesuffix(".") or ".", self._next_kind(following)
        if (kind, next_kind) in self._parameters.collocations:
            return False
        is_initial = len(word) == 2 and (word[0].isalpha() or word[0] == "_")
        if not is_break and not is_initial:
            return self._starts_sentence(following, next_kind)
        if is_initial or kind == _NUMBER_TYPE:
            return is_break and not self._continues(following, next_kind, is_initial)
        return is_break

    def _is_break_by_itself(self, word: str) -> bool:
        """Whether a word with a final full stop, by itself, ends a sentence (§4, first pass)."""
        if word == ".":
            return True
        if word.endswith(".."):
            return False
        bare = word[:-1].lower()
        known = self._parameters.abbreviations
        return bare not in known and bare.rpartition("-")[2] not in known

    def _next_kind(self, following: str) -> str:
        kind = _kind(following)
        if len(kind) > 1 and kind.endswith(".") and self._is_break_by_itself(following):
            return kind[:-1]
        return kind

    def _starts_sentence(self, following: str, kind: str) -> bool:
        """After an abbreviation or dots: whether the next word begins a sentence (§4.1)."""
        if not following[0].isupper():
            return False
        seen = self._parameters.orthography.get(kind, 0)
        if seen & _LOWER and not seen & _INSIDE_UPPER:
            return True
        return kind in self._parameters.starters

    def _continues(self, following: str, kind: str, is_initial: bool) -> bool:
        """After an initial or a number: whether the next word goes on (§4.3)."""
        if following in _MARKS:
            return True
        seen = self._parameters.orthography.get(kind, 0)
        if following[0].islower():
            return bool(seen & _UPPER) or not seen & _BEGINS_LOWER
        return is_initial and following[0].isupper() and not seen & _LOWER


def _candidates(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The last candidate of each word between blanks, and where that word starts."""
    blanks = [mark for mark in string.whitespace if mark in text]
    word_start = 0
    held: re.Match[str] | None = None
    for candidate in _CANDIDATE.finditer(text):
        since = held.start() if held else 0
        blank = max([text.rfind(mark, since, candidate.start()) for mark in blanks], default=-1)
        new_word = blank > since
        # A mark that a word begins with stands alone, whatever marks follow it.
        if held and (new_word or held.start() == word_start):
            yield word_start, held
        if new_word:
            word_start = blank + 1
        held = candidate
    if held:
        yield word_start, held


def _with_closing_marks(text: str, slices: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Move brackets and quotation marks that follow a sentence's end into that sentence."""
    moved = 0
    for (own_start, stop), following in zip(slices, [*slices[1:], None], strict=True):
        start = own_start + moved
        moved = 0
        marks = _TRAILING.match(text, *following) if following else None
        if marks:
            moved = marks.end() - marks.start()
            yield start, marks.start() + len(marks[0].rstrip())
        elif start < stop:
            yield start, stop


def _kind(word: str) -> str:
    """The word's type: in lower case, any number as one."""
    return _NUMBER_TYPE if _NUMBER.fullmatch(word) else word.lower()
