"""Splits a text for the checks: its lines cleaned, its paragraphs, words, sentences and verse."""

from __future__ import annotations

import re

from visenv.checks.sentences import split_sentences

_BLANK_LINES = re.compile(r"\n\s*\n")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
# In the patterns below a character comes first, and what is before it is asked after it: that is
# searched for much faster than a condition.

_LIST_MARKER = re.compile(r"[-*+•‣–\d](?<![^\n].)(?:(?<!\d)|(?<=\d)\d{0,2}[.)])[ \t]+")

# Tokens between blanks that are no words: without a letter or digit (strict), or left empty when
# MM-IFEngine has dropped its punctuation. Possessive, so that a long token is read once.
_NO_WORD = re.compile(r"[\W_](?<=\S)(?<!\S.)(?:[^\w\s]|_)*+(?!\S)")
_NO_WORD_MMIF = re.compile(r"[^\w\s.-](?<!\S.)[^\w\s.-]*+(?!\S)")

_VERSE_LINE = 60
_DASHES = ("-", "–", "—")


def clean(text: str) -> str:
    """Return the text without blanks at the ends of its lines and around it."""
    return "\n".join([line.strip() for line in text.splitlines()]).strip()


def blocks(text: str) -> list[str]:
    """Return the parts between blank lines, without blank parts; the papers' "paragraphs"."""
    return [block for block in _BLANK_LINES.split(text) if block.strip()]


def paragraphs(response: str) -> list[str]:
    """Return the paragraphs of ``strict``: blocks with a letter or digit, so no ruled lines."""
    return [block for block in blocks(clean(response)) if _LETTER_OR_DIGIT.search(block)]


def sentences(response: str) -> list[str]:
    """Return the sentences of ``strict``: Punkt's that hold a letter or digit.

    A blank line ends a sentence; so does the beginning of a list item, whose marker is left out.
    """
    apart = without_list_markers(clean(response))
    split = [sentence for block in blocks(apart) for sentence in split_sentences(block)]
    return [sentence for sentence in split if _LETTER_OR_DIGIT.search(sentence)]


def without_list_markers(text: str) -> str:
    """Return the text with a blank line for each marker (``- ``, ``2. ``) at a line's start."""
    return _LIST_MARKER.sub("\n\n", text)


def word_count(text: str) -> int:
    """Return the number of words of ``strict``: between blanks, and holding a letter or digit."""
    return len(text.split()) - len(_NO_WORD.findall(text))


def words_left_mmif(text: str) -> int:
    """Return the number of words left when all but letters, digits, ``_ . -`` has been dropped."""
    return len(text.split()) - len(_NO_WORD_MMIF.findall(text))


def is_verse(paragraph: str) -> bool:
    """Return whether a paragraph is verse, for ``strict``: its lines count, not its sentences.

    Two lines or more, all short and none a list item. Then either most lines end in a dash (the
    public code's sign), or most begin with a capital letter while at most half end a sentence:
    prose that is wrapped at a narrow width begins few lines so.
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
    """Apply ARM-Thinker's test for verse: short lines alone never reach 0.6 without dashes."""
    lines = [line.strip() for line in paragraph.split("\n")]
    if len(lines) < 2:
        return False
    short = sum(len(line) < _VERSE_LINE for line in lines) / len(lines)
    dashed = sum(line.endswith("-") for line in lines) / len(lines)
    spaced = sum(line.endswith(" -") for line in lines) / len(lines)
    return short * 0.4 + dashed * 0.4 + spaced * 0.2 > 0.6
