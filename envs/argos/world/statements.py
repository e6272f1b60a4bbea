"""Reads which options a sentence states, and for which things its words stand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .sentences import is_negated
from .things import COLORS, MATERIALS, SHAPES, SIZES

Options = Sequence[str]
"""The possible answers of a question."""

ADJECTIVES = "|".join((*COLORS, *MATERIALS, *SIZES))
_NOUNS = "|".join((*SHAPES, "bar", "region", "wall"))
_PHRASE = re.compile(rf"\b((?:(?:{ADJECTIVES}) )*)({_NOUNS}|one|thing|object)\b")
_STATES = re.compile(
    r"\b(?:answer|it|its|this|that|so|therefore|thus|hence|choice|solution|conclusion|result)\b"
)
_EMPTY_WORDS = """
    the a an is are be so it its that this answer must therefore thus hence clearly of in on to at
    side was were have been choice correct right final result conclusion solution option we i see
    think believe find conclude , indeed surely certainly definitely color 1 one only all
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
"""Words that say nothing about the world."""

_UNSPECIFIC = frozenset((*SIZES, *MATERIALS, "one", "thing", "object"))
"""Words of a name that do not tell the two things of a question apart."""


def with_things(text: str, names: Sequence[str]) -> str:
    """Return a text in which ``X0`` and ``X1`` stand for the things with these names."""

    def stand_in(found: re.Match[str]) -> str:
        words = set(f"{found[1]}{found[2]}".split()) - _UNSPECIFIC
        fits = [place for place, name in enumerate(names) if words <= set(name.split())]
        return f"X{fits[0]}" if words and len(fits) == 1 else found[0]

    text = _PHRASE.sub(stand_in, re.sub(rf"\b({ADJECTIVES}) 1\b", r"\1 one", text))
    named = set(re.findall(r"X([01])", text))
    if len(named) == 1:
        text = re.sub(r"\bother(?: one| 1)?\b", f"X{1 - int(named.pop())}", text)
    return text


def said(text: str, options: Options) -> set[str] | None:
    """Return the named option, or all other options if the text is negated.

    None means that the text names no option or several.
    """
    if re.search(r"\b(\w+) or (?:the |in the )?(\w+)\b", text):
        return None
    text = re.sub(rf"\bnot (?:{'|'.join(options)}) ,? ?but\b", "", text)
    contrast = re.compile(
        rf",? ?(?:and )?(?:not|rather than|instead of|unlike) (?:{'|'.join(options)})\b"
    )
    if any(re.search(rf"\b{option}\b", contrast.sub("", text)) for option in options):
        text = (
            contrast.sub("", text) if re.search(r"\b(?:is|are)\b(?! not).*\bnot\b", text) else text
        )
    found = {option for option in options if re.search(rf"\b{option}\b", text)}
    if len(found) != 1:
        return None
    return without(found, options, is_negated(text))


def without(found: set[str], options: Options, negated: bool) -> set[str]:
    """Return the options found, or all others if the sentence is negated."""
    return set(options) - found if negated else found


def is_statement(text: str, options: Options) -> bool:
    """Return whether a text without the thing in question may state its property."""
    rest = set(re.findall(r"[\w,]+", text)) - set(options)
    return bool(_STATES.search(text)) or rest <= _EMPTY
