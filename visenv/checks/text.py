"""Splits a text for the checks into lines, paragraphs, words and sentences, and detects verse."""

from __future__ import annotations

import re

from visenv.checks.sentences import split_sentences

_BLANK_LINES = re.compile(r"\n\s*\n")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
# The patterns below begin with a character, and a lookbehind after it checks the previous
# characters. Such a pattern is much faster than one that begins with a condition.

_LIST_MARKER = re.compile(r"[-*+•‣–\d](?<![^\n].)(?:(?<!\d)|(?<=\d)\d{0,2}[.)])[ \t]+")

# Tokens between blanks that are not words: tokens without a letter or digit (strict), or tokens
# that are empty after MM-IFEngine has removed punctuation. The quantifiers are possessive, so that
# a long token is read once.
_NO_WORD = re.compile(r"[\W_](?<=\S)(?<!\S.)(?:[^\w\s]|_)*+(?!\S)")
_NO_WORD_MMIF = re.compile(r"[^\w\s.-](?<!\S.)[^\w\s.-]*+(?!\S)")

_VERSE_LINE = 60
_DASHES = ("-", "–", "—")


def clean(text: str) -> str:
    """Return the text without whitespace at the ends of its lines, and at its start and end."""
    return "\n".join([line.strip() for line in text.splitlines()]).strip()


def blocks(text: str) -> list[str]:
    """Return the non-blank parts between blank lines, which the papers call "paragraphs"."""
    return [block for block in _BLANK_LINES.split(text) if block.strip()]


def paragraphs(response: str) -> list[str]:
    """Return the paragraphs of ``strict``: blocks with a letter or digit, without ruled lines."""
    return [block for block in blocks(clean(response)) if _LETTER_OR_DIGIT.search(block)]


def sentences(response: str) -> list[str]:
    """Return the sentences of ``strict``: Punkt's sentences that contain a letter or digit.

    A blank line ends a sentence. The start of a list item also ends it; the marker of the item is
    not part of any sentence.
    """
    apart = without_list_markers(clean(response))
    split = [sentence for block in blocks(apart) for sentence in split_sentences(block)]
    return [sentence for sentence in split if _LETTER_OR_DIGIT.search(sentence)]


def without_list_markers(text: str) -> str:
    """Return the text with each list marker (``- ``, ``2. ``) at a line start as a blank line."""
    return _LIST_MARKER.sub("\n\n", text)


def word_count(text: str) -> int:
    """Count the words of ``strict``: tokens between blanks with a letter or digit."""
    return len(text.split()) - len(_NO_WORD.findall(text))


def words_left_mmif(text: str) -> int:
    """Count the words after everything except letters, digits and ``_ . -`` has been removed."""
    return len(text.split()) - len(_NO_WORD_MMIF.findall(text))


def is_verse(paragraph: str) -> bool:
    """Return whether a paragraph is verse by ``strict``, so that its lines are counted.

    A verse has at least two lines, all of them short and none a list item. In addition, either most
    lines end in a dash (the criterion of the public code), or most begin with a capital letter and
    at most half end a sentence. In prose that is wrapped at a narrow width, few lines begin with a
    capital letter.
    """
    lines = paragraph.split("\n")
    if len(lines) < 2 or max(map(len, lines)) >= _VERSE_LINE or _LIST_MARKER.search(paragraph):
        return False
    half = len(lines) / 2
    if sum(line.endswith(_DASHES) for line in lines) >= half:
        return True
    capitals = sum(line.lstrip("\"'“‘*_>( ")[:1].isupper() for line in lines)
    ended = sum(line.rstrip("\"'”’*_) ").endswith((".", "!", "?")) for line in lines)
    return capitals > half and ended <= half


def is_verse_arm(paragraph: str) -> bool:
    """Return whether ARM-Thinker's test finds verse: short lines without dashes never reach 0.6."""
    lines = [line.strip() for line in paragraph.split("\n")]
    if len(lines) < 2:
        return False
    short = sum(len(line) < _VERSE_LINE for line in lines) / len(lines)
    dashed = sum(line.endswith("-") for line in lines) / len(lines)
    spaced = sum(line.endswith(" -") for line in lines) / len(lines)
    return short * 0.4 + dashed * 0.4 + spaced * 0.2 > 0.6
