"""Creates texts for checks 7, 8, 15 and 16: unwanted texts, and numbers of mentions."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from visenv.worlds.draws import pick

from .amounts import Amount, draw_amount, draw_count
from .prose import (
    ConstrainedText,
    between,
    finished,
    listed,
    mixed,
    sentence,
    sentences,
    some,
    spread,
    words_of,
)

KEYWORDS: Final = words_of("""
biscuit candle carpet basket feather glacier lantern marble orchard pepper pillow sparrow telescope
violin
""")

_MENTIONS = (
    "The {it} lay on the table",
    "We looked at the {it} for a while",
    "What the mayor wanted was the {it}",
    "Nobody had seen the {it} before",
)

_EACH_KEYWORD = (
    "Each of these keywords must be mentioned {amount}: {list}.",
    "Use every one of the keywords {list} {amount}.",
    "The keywords {list} should each appear {amount}.",
)

_ALL_KEYWORDS = (
    "These keywords must be mentioned {amount} in total: {list}.",
    "Taken together, the keywords {list} should appear {amount}.",
    "Use the keywords {list} {amount}, all of them counted together.",
)


def each_keyword(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text with a number of mentions of each keyword; in a wrong text, one differs."""
    amount, keywords = draw_amount(rng, 1, 3), some(rng, KEYWORDS, between(rng, 2, 3))
    counts = [draw_count(rng, amount, True, least=0).number for _ in keywords]
    case = "kept"
    if not keeps:
        place = int(rng.integers(len(keywords)))
        counts[place], missed = draw_count(rng, amount, False, least=0)
        case = f"{missed} of one of {len(keywords)} keywords"
    text, decoy = _mentioning(rng, keywords, counts)
    wording = pick(rng, _EACH_KEYWORD)
    return _keywords_made(text, wording, keywords, amount, case + decoy)


def total_keywords(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text with a number of mentions of all keywords together."""
    amount, keywords = draw_amount(rng, 2, 6), some(rng, KEYWORDS, between(rng, 2, 3))
    count = draw_count(rng, amount, keeps, least=0)
    shares = rng.multinomial(count.number, [1 / len(keywords)] * len(keywords)).tolist()
    text, decoy = _mentioning(rng, keywords, shares)
    wording = pick(rng, _ALL_KEYWORDS)
    return _keywords_made(text, wording, keywords, amount, count.case + decoy)


def _mentioning(
    rng: np.random.Generator, keywords: list[str], counts: list[int]
) -> tuple[str, str]:
    """Return a text with these numbers of mentions; plurals may occur and are not counted."""
    new = [
        finished(rng, pick(rng, _MENTIONS).format(it=pick(rng, (each, each, each.upper()))))
        for each, count in zip(keywords, counts, strict=True)
        for _ in range(count)
    ]
    decoy = bool(rng.integers(2))
    if decoy:
        new.append(f"There were other {pick(rng, keywords)}s too.")
    text = spread(rng, mixed(rng, sentences(rng, between(rng, 2, 4)), new))
    return text, ", with a plural" if decoy else ""


def _keywords_made(
    text: str, wording: str, keywords: list[str], amount: Amount, case: str
) -> ConstrainedText:
    constraint = wording.format(list=listed(keywords), amount=amount.of("time"))
    return ConstrainedText(
        text, constraint, {"keywords": keywords, **amount.bounds_of_times()}, case
    )


class UnwantedText(NamedTuple):
    """Describes a text that must not occur.

    Attributes:
        text: The text that must not occur.
        hidden: A longer word that contains it.
        alike: A similar word that does not contain it.
    """

    text: str
    hidden: str
    alike: str


UNWANTED: Final = (
    UnwantedText("able", "remarkable", "ample"),
    UnwantedText("age", "village", "ace"),
    UnwantedText("art", "party", "act"),
    UnwantedText("cat", "delicate", "cut"),
    UnwantedText("ear", "pearls", "eel"),
    UnwantedText("even", "eleven", "oven"),
    UnwantedText("here", "sphere", "hero"),
    UnwantedText("like", "likely", "lake"),
    UnwantedText("over", "discovery", "oven"),
    UnwantedText("rain", "trainer", "ruin"),
    UnwantedText("use", "amuse", "us"),
    UnwantedText("very", "everything", "vary"),
)

_CARRIERS = (
    "Somebody wrote {it} on the wall",
    "The note said {it} in large letters",
    "Nobody could say what {it} meant",
    "We talked about {it} for an hour",
    "It all began with {it}",
)

_NONE_OF = (
    "The response must not contain any of these: {list}.",
    "Do not use any of the following anywhere, not even inside other words: {list}.",
    "None of {list} may occur in the text, in capitals or not.",
)

_NOT = (
    'The response must not contain "{it}".',
    'Do not write "{it}" anywhere, not even inside another word.',
    'The letters "{it}" may not occur in the text, in capitals or not.',
)


def contains_none(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text without any of several texts; a wrong text contains one of them once."""
    unwanted = some(rng, UNWANTED, between(rng, 2, 4))
    text, case = _with_or_without(rng, unwanted, keeps)
    substrings = [each.text for each in unwanted]
    constraint = pick(rng, _NONE_OF).format(list=listed(substrings))
    return ConstrainedText(text, constraint, {"substrings": substrings}, case)


def does_not_contain(rng: np.random.Generator, keeps: bool) -> ConstrainedText:
    """Create a text without the given text; a wrong text contains it once."""
    unwanted = pick(rng, UNWANTED)
    text, case = _with_or_without(rng, [unwanted], keeps)
    constraint = pick(rng, _NOT).format(it=unwanted.text)
    return ConstrainedText(text, constraint, {"substring": unwanted.text}, case)


def _with_or_without(
    rng: np.random.Generator, unwanted: list[UnwantedText], keeps: bool
) -> tuple[str, str]:
    """Return a text that contains a look-alike of one of the texts, or the text itself."""
    text, hidden, alike = pick(rng, unwanted)
    kept = (("kept", ""), ("kept, with a look-alike", alike))
    broken = (
        ("it occurs", text),
        ("it occurs in capitals", text.upper()),
        ("it occurs inside a word", hidden),
    )
    case, word = pick(rng, kept if keeps else broken)
    made = _without(rng, unwanted, between(rng, 4, 7))
    if word:
        made = mixed(rng, made, [finished(rng, pick(rng, _CARRIERS).format(it=f'"{word}"'))])
    return spread(rng, made), case


def _without(rng: np.random.Generator, unwanted: list[UnwantedText], number: int) -> list[str]:
    """Return that many sentences that contain none of the texts."""
    made: list[str] = []
    while len(made) < number:
        new = sentence(rng)
        if not any(each.text in new.lower() for each in unwanted):
            made.append(new)
    return made
