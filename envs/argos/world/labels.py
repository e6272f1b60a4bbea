"""Resolves labels: words and their synonyms, compared with the attributes of a thing."""

from __future__ import annotations

import re
from functools import lru_cache

from .things import COLORS, MATERIALS, PALETTE, SHAPES, SIZES, Thing

SYNONYMS = {
    "sphere": "ball",
    "circle": "ball",
    "box": "cube",
    "square": "cube",
    "block": "cube",
    "triangle": "cone",
    "pyramid": "cone",
    "rhombus": "diamond",
    "column": "bar",
    "area": "region",
    "country": "region",
    "violet": "purple",
    "big": "large",
    "little": "small",
    "tiny": "small",
    "stripy": "striped",
    "spotted": "dotted",
    "checked": "checkered",
    "solid": "plain",
    "screen": "wall",
    "grey": "gray",
    "matte": "plain",
}
_PARTS = frozenset(("bar", "region"))
_NOUNS = frozenset(SHAPES) | _PARTS | {"wall"}
_KNOWN = frozenset((*PALETTE, *MATERIALS, *SIZES, *_NOUNS))
_SKIPPED = frozenset(("a", "an", "the", "one", "of", "that"))
_WORD = re.compile(r"[a-z0-9]+")


@lru_cache(maxsize=4096)
def words_of(label: str) -> frozenset[str] | None:
    """Return the attributes that a label names, or None if it names no thing of this world.

    A label must contain a word for a shape: "red" or "thing" alone names nothing. A bar or a
    region also needs a color, because "bar" would match any position in a chart, and "region" any
    position on a map. Plurals are read as singulars.
    """
    words = {_singular(word) for word in _WORD.findall(label.casefold())} - _SKIPPED
    if not words <= _KNOWN or not words & _NOUNS:
        return None
    if words & _PARTS and not words & set(COLORS):
        return None
    return frozenset(words)


def names(label: str, thing: Thing) -> bool:
    """Return whether a label matches a thing: every word of the label applies to the thing."""
    words = words_of(label)
    return words is not None and words <= attributes(thing)


def attributes(thing: Thing) -> frozenset[str]:
    """Return the words that apply to a thing."""
    return frozenset((thing.color, thing.material, thing.shape, thing.size))


def normal_words(text: str) -> list[str]:
    """Return the words of a text in order, synonyms and plurals replaced."""
    return [_singular(word) for word in _WORD.findall(text.casefold())]


def _singular(word: str) -> str:
    if word in SYNONYMS:
        return SYNONYMS[word]
    if word in _KNOWN:
        return word
    for ending, instead in (("ies", "y"), ("xes", "x"), ("sses", "ss"), ("s", "")):
        if word.endswith(ending):
            single = word.removesuffix(ending) + instead
            single = SYNONYMS.get(single, single)
            if single in _KNOWN:
                return single
    return word
