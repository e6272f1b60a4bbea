"""Decides which answer follows from a reasoning about a procedural world.

Each sentence is read as propositions about the things in question: subject, relation, object,
polarity and certainty. A proposition is the set of answers with which it agrees; a sentence decides
the question if exactly one answer is left. The last sentence that decides counts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from .amounts import duration, number
from .asked import Asked
from .pairs import PAIRS, chosen
from .sentences import (
    ADJECTIVES,
    Options,
    Sentence,
    is_negated,
    is_statement,
    said,
    sentences,
    with_things,
    without,
)
from .things import COLORS, SHAPES

_REPLY = re.compile(r"^(?:yes|no) , ")
_IN_FRAME = re.compile(r"\bX([01]) [^,X]*?\bframe (\d+)")
_SIDE = re.compile(r"\b(left|right)(?:most|wards?)?\b")
_AFTERWARDS = re.compile(r"\b(?:out|reappear\w*|emerg\w*|afterwards|later|again)\b")
_TOWARDS = re.compile(
    r"\b(?:moves?|moved|moving|goes|going|went|rolls?|heads?|heading|travels?)\b[^,]*"
    r"\b(?:to|towards?) (?:the )?(?:left|right)(?! of| side)|\b(?:left|right)wards?\b"
)

Reader = Callable[[Sentence, Asked, Options, float], "set[str] | None"]


def entailed(reasoning: str, asked: Asked, options: Options, step: float) -> str | None:
    """Return the answer that follows from a reasoning, or None.

    Args:
        reasoning: The text, without tags.
        asked: The relation that the question asks about.
        options: The possible answers.
        step: Seconds from frame to frame; 0 for an image.
    """
    reader = READERS[asked.relation]
    for read in reversed(sentences(reasoning)):
        # "No, the ball is blue" corrects an earlier sentence, and negates nothing.
        is_reply = asked.relation != "presence"
        sentence = Sentence(_REPLY.sub("", read.text)) if is_reply else read
        found = reader(sentence, asked, options, step)
        if found is not None and len(found) == 1:
            return found.pop()
    return None


def _pair(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read which of two things has a property."""
    text = with_things(sentence.text, options)
    if asked.relation == "order" and (first := _earlier_frame(text)) is not None:
        return {options[first]}
    found = chosen(Sentence(text), PAIRS[asked.relation])
    return None if found is None else {options[number] for number in found}


def _earlier_frame(text: str) -> int | None:
    """Return which of two things is named with the smaller number of a frame."""
    frames = {thing: int(frame) for thing, frame in _IN_FRAME.findall(text)}
    if len(frames) < 2 or frames["0"] == frames["1"] or is_negated(text):
        return None
    return 0 if frames["0"] < frames["1"] else 1


def _value(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read a color or a material of the thing in question."""
    text = _patterns(sentence.text)
    shape = asked.subject
    others = [
        noun
        for noun in (*SHAPES, "ground", "background", "floor", "thing", "object", "bar")
        if noun != shape
    ]
    about = re.search(rf"\b{shape}\b", text)
    foreign = re.search(rf"\b(?:{'|'.join(others)})s?\b", text)
    if foreign and not about:
        return None
    if foreign and about:  # "although the cube is green, the ball is red"
        clauses = Sentence(text).clauses()
        own = [each for each in clauses if not re.search(rf"\b(?:{'|'.join(others)})s?\b", each)]
        text = " , ".join(each for each in own if re.search(rf"\b{shape}\b", each)) or text
    text = re.sub(rf"\b(?:{ADJECTIVES}) (?={'|'.join(others)})", "", text)
    return said(text, options) if about or is_statement(text, options) else None


def _patterns(text: str) -> str:
    """Return a text in which words for patterns are adjectives."""
    text = re.sub(
        r"\b(?:no|without(?: a| any)?) pattern\b|\bunpatterned\b|\buniform\b", "plain", text
    )
    text = re.sub(r"\b(?:polka )?dots?\b", "dotted", text)
    text = re.sub(r"\bstripes?\b", "striped", text)
    return re.sub(r"\b(?:checks|checkerboard|chessboard)\b", "checkered", text)


def _region(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read in which region a thing is."""
    text = sentence.text
    if re.search(r"\b(?:next|near|beside|far|close)\b", text):
        return None
    text = re.sub(r"\boutside(?: of)?\b", "not in", text)
    about = re.search(rf"\b(?:{asked.subject}|marker)\b", text)
    if not about and (re.search(r"\bthere (?:is|are)\b", text) or not is_statement(text, options)):
        return None
    return said(text, options)


_EXTREMES = {
    "tallest": r"\b(?:tallest|highest|longest|largest|biggest|greatest|maximum|max|top|taller"
    r"|higher|longer|larger|bigger)\b",
    "shortest": r"\b(?:shortest|lowest|smallest|least|minimum|min|shorter|lower|smaller)\b",
}
_COMPARATIVE = re.compile(r"\b(?:taller|higher|longer|larger|bigger|shorter|lower|smaller)\b")


def _extreme(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read which bar of a chart is the tallest or the shortest."""
    text = sentence.text
    if not re.search(_EXTREMES[asked.given], text):
        opposite = any(re.search(pattern, text) for pattern in _EXTREMES.values())
        stated = not opposite and not re.search(r"\bthere\b", text) and is_statement(text, options)
        return said(text, options) if stated else None
    if _COMPARATIVE.search(text):
        if re.match(r"no (?:other )?(?:bar|1)\b", text):
            return said(text[3:], options)
        if not re.search(r"\bthan (?:all|every|each|any|the (?:other|rest))", text):
            return None
    return said(text, options)


def _next_color(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read which color follows the given one; the colors follow each other in a cycle."""
    text = sentence.text
    if re.search(rf"\b{options[0]} or {options[1]}\b|\b{options[1]} or {options[0]}\b", text):
        return None
    colors = re.findall(rf"\b(?:{'|'.join((asked.given, *options))})\b", text)
    steps = [colors[0], *(b for a, b in itertools.pairwise(colors) if a != b)] if colors else []
    negated = is_negated(text)
    if len(steps) == 1:
        turns = re.search(r"\b(?:turns?|turned|becomes?|became|changes? to|next|then)\b", text)
        bare = is_statement(text, options) and not re.search(rf"\b{asked.subject}\b", text)
        if steps[0] == asked.given or not (turns or bare):
            return None
        return without(set(steps), options, negated)
    if len(steps) < 2:
        return None
    first, second = (re.search(rf"\b{color}\b", text) for color in steps[:2])
    assert first is not None
    assert second is not None
    lead, between = text[: first.start()], text[first.end() : second.start()]
    later = r"\b(?:after|follows|following|succeeds|replaces|from)\b"
    if (re.search(r"\bbefore\b", lead) or re.search(later, between)) and not re.search(
        r"\bfrom\b", lead
    ):
        steps = steps[:2][::-1]
    left: set[str] | None = None
    for pair in itertools.pairwise(steps):
        fits = {
            answer
            for answer, last in (tuple(options), tuple(options)[::-1])
            if pair in ((asked.given, answer), (answer, last), (last, asked.given))
        }
        left = fits if left is None else left & fits
    return None if left is None else without(left, options, negated)


_EXISTS = re.compile(
    r"\b(?:there|see|sees|seen|saw|visible|present|exists?|contains?|contain|shows?|includes?|has|have"
    r"|found|find|spot|1|here|scene|picture|image|missing|absent|lacks?|thing|none|i)\b"
)


def _presence(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read whether there is a thing of a color and a shape."""
    text = re.sub(r"\b(?:missing|absent|gone)\b", "not there", sentence.text)
    color, shape = asked.subject.split()
    stated = re.search(r"(?:^|\banswer (?:is )?|^so |^it is )(yes|no)(?= ,|$)", text)
    if stated:
        return {stated[1]}
    # "None of them is both red and a ball, so there is no red ball" is one negation of the ball.
    own = [clause for clause in Sentence(text).clauses() if asked.subject in clause]
    negated = is_negated(text) or any(map(is_negated, own))
    if re.search(rf"\b{asked.subject}\b", text):
        if not _EXISTS.search(text):
            return None
        return without({"yes"}, options, negated)
    predicate = re.search(
        rf"\b{shape} (?:that |which )?(?:is|looks) (?:not )?({'|'.join(COLORS)})\b", text
    )
    if predicate:
        if predicate[1] != color:
            return None if negated else {"no"}
        return without({"yes"}, options, negated)
    return None


def _side(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
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


def _hiding(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
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


READERS: dict[str, Reader] = {
    "number": number,
    "color": _value,
    "material": _value,
    "side": _side,
    "depth": _pair,
    "presence": _presence,
    "extreme bar": _extreme,
    "region": _region,
    "number of changes": number,
    "order": _pair,
    "next color": _next_color,
    "stillness": _pair,
    "duration": duration,
    "speed": _pair,
    "side before hiding": _hiding,
}
