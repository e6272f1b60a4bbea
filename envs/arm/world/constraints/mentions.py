"""Creates texts for checks 15 and 16: numbers of mentions of keywords."""

from __future__ import annotations

from typing import Final

import numpy as np

from visenv.worlds.draws import pick

from .amounts import Amount, draw_amount, draw_count
from .prose import (
    ConstrainedText,
    between,
    finished,
    listed,
    mixed,
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
