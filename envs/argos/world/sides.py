"""Reads conclusions about sides: left or right of a thing, and of a wall before it hides one."""

from __future__ import annotations

import re

from .asked import Asked
from .sentences import Options, Sentence, is_negated, is_statement, with_things, without

_SIDE = re.compile(r"\b(left|right)(?:most|wards?)?\b")


def side(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read on which side of the second thing the first thing is."""
    text = with_things(sentence.text, (asked.subject, asked.other))
    if "left" in text and "right" in text and not re.search(r"\bX[01]\b", text):
        return None
    if re.search(r"\bof (?:the )?(?:picture|image|scene|center|middle|frame|screen)\b", text):
        return None
    result: set[str] | None = None
    for clause in Sentence(text).clauses():
        sides = list(_SIDE.finditer(clause))
        if len({found[1] for found in sides}) != 1:
            continue
        found = sides[0]
        if re.search(r"\bX[01] ofit (?:left|right)", clause):
            subject = 1 - int(re.search(r"X([01]) ofit", clause)[1])  # type: ignore[index]
        else:
            earlier = re.findall(r"\bX([01])\b", clause[: found.start()])
            later = re.findall(r"\bX([01])\b", clause[found.end() :])
            reference = re.match(
                r"(?: hand)?(?: side)? (?:of|from) (?:the )?X([01])", clause[found.end() :]
            )
            if earlier:
                subject = int(earlier[-1])
            elif reference:
                subject = 1 - int(reference[1])
            elif later:
                subject = int(later[0])
            elif re.search(
                r"\b(?:there|something|both|thing|object)\b", clause
            ) or not is_statement(clause, options):
                continue
            else:
                subject = 0
        fits = {found[1] if subject == 0 else _opposite(found[1])}
        fits = without(fits, options, is_negated(clause))
        result = fits if result is None else result & fits
    return result


_AFTERWARDS = re.compile(r"\b(?:out|reappear\w*|emerg\w*|afterwards|later|again)\b")
_TOWARDS = re.compile(
    r"\b(?:moves?|moved|moving|goes|going|went|rolls?|heads?|heading|travels?)\b[^,]*"
    r"\b(?:to|towards?) (?:the )?(?:left|right)(?! of| side)|\b(?:left|right)wards?\b"
)


def hiding(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read on which side of the wall a thing was before it was hidden."""
    text = with_things(sentence.text, (asked.subject, asked.other))
    kept = " , ".join(each for each in Sentence(text).clauses() if not _AFTERWARDS.search(each))
    sides = {found[1] for found in _SIDE.finditer(kept)}
    if len(sides) != 1:
        return None
    if re.search(r"\bX1 (?:is|was) (?:on|to|at)?", kept):
        sides = {_opposite(sides.pop())}
    if _TOWARDS.search(kept):
        sides = {_opposite(sides.pop())}
    foreign = re.search(r"\b(?:thing|something|object)\b", kept)
    return None if foreign else without(sides, options, is_negated(kept))


def _opposite(side: str) -> str:
    return "right" if side == "left" else "left"
