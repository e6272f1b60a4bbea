"""Splits texts into words for search, also in scripts that are written without blanks.

The rule, for documents and queries alike:

1. The text is made canonical (`visenv.text.normalize.canonical`) and case folded.
2. A word is a run of letters, digits and underscores, with the combining marks in it.
3. In Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese, the words of a run are its pairs of
   neighboring characters (bigrams): 营业收入 has the words 营业, 业收 and 收入. A run
   ends where the script changes (漢字 and かな), and a run of one character is one word. A
   character is a letter with its vowel signs and tone marks. Korean has blanks, but its particles
   are written at the noun.

Bigrams need no dictionary, and find about as much as segmented words do (Nie et al., "On the use of
words and n-grams for Chinese information retrieval", 2000; Lucene's CJKAnalyzer has the same rule).
English words are the same as without the third rule.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from visenv.text.normalize import canonical

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Ranges of Chinese, Japanese and Korean characters. No blank separates a Latin word from them."""

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
_THAI, _LAO = "\u0e01-\u0e3a\u0e40-\u0e4e", "\u0e81-\u0ece\u0edc-\u0edf"
_BURMESE, _KHMER = "\u1000-\u103f\u1050-\u109f", "\u1780-\u17d3"
_WITHOUT_BLANKS = _HAN + _HIRAGANA + _KATAKANA + _THAI + _LAO + _BURMESE + _KHMER
_PAIRED = _WITHOUT_BLANKS + _HANGUL
_PLAIN_WORD = re.compile(r"\w+")
_CLOSING = "、。，．：；！？」』）】》〉…"


def search_words(text: str) -> list[str]:
    """Return the words of a text, case folded (see the module)."""
    plain = canonical(text).casefold()
    if plain.isascii() or not _special().search(plain):
        return _PLAIN_WORD.findall(plain)
    found: list[str] = []
    for run in _runs().finditer(plain):
        if run.lastgroup == "paired":
            found += bigrams(run[0])
        else:
            found.append(run[0])
    return found


def with_blanks(text: str) -> str:
    """Return the text with blanks between the words of scripts that are written without them.

    A tokenizer that splits at blanks then finds the words of `search_words`.
    """
    if text.isascii():
        return text
    return _runs().sub(_with_blanks, canonical(text))


def _with_blanks(run: re.Match[str]) -> str:
    return f" {' '.join(bigrams(run[0]))} " if run.lastgroup == "paired" else run[0]


def bigrams(run: str) -> list[str]:
    """Return the pairs of neighboring characters of a run; the run itself if it has only one."""
    characters = [each for each in _character().findall(run) if each]
    if len(characters) < 2:
        return [run]
    return [first + second for first, second in pairwise(characters)]


def passages(text: str, words: int) -> Iterator[str]:
    """Yield the text in parts of at most `words` words, with single blanks.

    Two characters of a script that is written without blanks count as a word, which is about its
    mean length; Korean has blanks.
    """
    part = ""
    for place, (piece, joined) in enumerate(_pieces(text)):
        if place % words == 0 and place:
            yield part
            part = ""
        part += piece if joined or not part else f" {piece}"
    if part:
        yield part


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether it follows the previous one without a blank."""
    if text.isascii():
        yield from ((word, False) for word in text.split())
        return
    end = 0
    for piece in _piece().finditer(text):
        yield piece[0], piece.start() == end > 0
        end = piece.end()


@cache
def _marks() -> str:
    """Return the combining marks of the Basic Multilingual Plane, for a class of characters."""
    return "".join(
        chr(code)
        for code in range(0x300, 0x10000)
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
    )


@cache
def _runs() -> re.Pattern[str]:
    scripts = (_HAN, _HIRAGANA, _KATAKANA, _HANGUL, _THAI, _LAO, _BURMESE, _KHMER)
    paired = "|".join(f"[{script}]+" for script in scripts)
    return re.compile(rf"(?P<paired>{paired})|[^\W{_PAIRED}](?:[^\W{_PAIRED}]|[{_marks()}])*")


@cache
def _special() -> re.Pattern[str]:
    """Return a pattern for the characters at which words are not only runs of letters."""
    return re.compile(f"[{_PAIRED}{_marks()}]")


@cache
def _character() -> re.Pattern[str]:
    return re.compile(rf"[^{_marks()}]?[{_marks()}]*", re.DOTALL)


@cache
def _piece() -> re.Pattern[str]:
    dense = f"[{_WITHOUT_BLANKS}]"
    closing = re.escape(_CLOSING)
    return re.compile(
        rf"{dense}(?:[{_marks()}]*{dense})?[{_marks()}]*[{closing}]*|[^\s{_WITHOUT_BLANKS}]+"
    )
