"""Reads clauses that compare two things: which one a predicate makes the answer.

A predicate holds of the answer, or of the other thing. Its subject is the last thing before it, or
the first one after it. "A is in front of B", "B is behind A" and "behind A, there is B" are equal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .sentences import Sentence, is_negated

THING = re.compile(r"\bX([01])\b")


class Predicates(NamedTuple):
    """Holds the words of a relation of two things.

    Attributes:
        answer: Matches words that hold of the answer.
        other: Matches words that hold of the other thing.
        passive: Matches words that hold of the other thing of those before them: ``covered by``.
        vetoes: Matches words of clauses about something else.
    """

    answer: re.Pattern[str]
    other: re.Pattern[str]
    vetoes: re.Pattern[str]


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words.split())})\b")


PAIRS: dict[str, Predicates] = {
    "depth": Predicates(
        re.compile(
            r"\b(?:infront|ontop|foreground|closer|closest|nearer|nearest|frontmost|above"
            r"|(?:covers?|covering|hides?|hiding|occludes?|occluding|obscures?|obscuring"
            r"|blocks?|blocking|overlaps?|overlapping|conceals?)(?! behind)(?=.*\bX[01])"
            r"|(?:fully|completely|entirely|wholly) visible|in full view|unobstructed)\b"
        ),
        re.compile(
            r"\b(?:behind|back|background|farther|further|farthest|furthest|underneath|beneath"
            r"|below"
            r"|covered|hidden|occluded|obscured|blocked|overlapped|concealed"
            r"|(?:partly|partially|only half|half|incompletely) visible)\b"
        ),
        _any("next beside both neither too"),
    ),
    "order": Predicates(
        re.compile(
            r"\b(?:first|before|earlier|earliest|sooner|precedes?|preceded(?! by)|preceding|ahead"
            r"|already|followed by)\b"
        ),
        re.compile(
            r"\b(?:second|after|afterwards|later|latest|last|follows|following|next|succeeds"
            r"|preceded by)\b"
        ),
        re.compile(
            r"\b(?:leaves?|leaving|exits?|disappears?|vanish\w*|same time|simultaneously"
            r"|together|both|neither|too)\b"
        ),
    ),
    "stillness": Predicates(
        re.compile(
            r"\b(?:still|stationary|rests?|resting|waits?|waiting|stays?|staying|stayed|remains?"
            r"|motionless|immobile|unmoving|static|fixed|keeps? its|holds? its"
            r"|(?:approached|reached|met|visited) by)\b"
        ),
        re.compile(
            r"\b(?:move|moves|moved|moving|mover|come|comes|came|coming|go|goes|went|going|travels?"
            r"|traveled|traveling|approach|approaches|approached|approaching|rolls?|slides?|glides?"
            r"|heads?|walks?|runs?|drives?|drifts?|arrives?|reaches|in motion|motion)\b"
        ),
        _any("both neither"),
    ),
    "speed": Predicates(
        re.compile(
            r"\b(?:faster|fastest|fast|quicker|quickest|quick|quickly|rapid|rapidly|swifter|swift"
            r"|speedier|outpaces?|outruns?|overtakes?|less time|fewer frames"
            r"|(?:more|greater|longer|larger) (?:distance|ground|way|path)"
            r"|(?:higher|greater|larger|bigger|more|highest|greatest) (?:speed|velocity|pace)"
            r"|(?:speed|velocity|pace)\b.* (?:higher|greater|larger|bigger|highest|greatest))\b"
        ),
        re.compile(
            r"\b(?:slower|slowest|slow|slowly|lags?|lagging|outpaced|outrun|overtaken|more time"
            r"|more frames|(?:less|shorter|smaller) (?:distance|ground|way|path)"
            r"|(?:lower|smaller|less|lowest|smallest) (?:speed|velocity|pace)"
            r"|(?:speed|velocity|pace)\b.* (?:lower|smaller|less|lowest|smallest))\b"
        ),
        _any("equally same both neither too"),
    ),
}

_EQUAL = re.compile(r"\bas \w+(?: \w+)? as\b")
_CONTRAST = re.compile(
    r",? ?(?:and )?(?:not|rather than|instead of|unlike|as opposed to) (?:the )?(X[01])\b(?! but)"
)
_NOT_BUT = re.compile(r"\bnot (?:the )?X[01] ,? ?but\b")
_LEADING = re.compile(r"^(infront|ontop|first|behind it|earlier) ,")
_WHICH = re.compile(r"\bX([01]) ,? ?which\b")
_IT = re.compile(r"^it (?!is (?:the )?X[01])")
_ALSO = re.compile(r"\bso (?:is|are|does|do|did)\b")
_LESS = re.compile(r"\bless (?=fast|quick|rapid|slow|close)")
_BARE = re.compile(
    r"^(?:.*\b(?:answer|it|that|this|choice|one|so|therefore|thus|hence|solution) )?"
    r"(?:is |be |must be |clearly |the |therefore |that )*X([01])$"
)
_ELLIPTIC = re.compile(r"\b(?:does|is|do|did|was)(?: not)?$")


def chosen(sentence: Sentence, predicates: Predicates) -> set[int] | None:
    """Return the things that can be the answer after a sentence with things ``X0`` and ``X1``.

    None means that the sentence does not decide. An empty set means that it contradicts itself.
    """
    text = sentence.text
    if re.search(r"\bX[01] or (?:the )?X[01]\b", text) or predicates.vetoes.search(text):
        return None
    if _ALSO.search(text):
        return None
    text = _CONTRAST.sub(
        lambda m: "" if m.start() and THING.search(text[: m.start()]) else m[0], text
    )
    text = _WHICH.sub(r"X\1 , X\1", _LEADING.sub(r"\1 ", text))
    text = _LESS.sub("not ", _NOT_BUT.sub("", text))
    equal = _EQUAL.search(text)
    if equal and not is_negated(text):
        return None
    if equal:
        text = re.sub(r"\bas (\w+(?: \w+)?) as\b", r"\1", text)
    result: set[int] | None = None
    before: tuple[bool, int] | None = None
    last: int | None = None
    for clause in Sentence(text).clauses():
        found, before, last = _clause(clause, predicates, before, last)
        if found is not None:
            result = {found} if result is None else result & {found}
    if result is None:
        bare = _BARE.search(text)
        if bare:
            return {int(bare[1])} if not is_negated(text) else {1 - int(bare[1])}
    return result


def _clause(
    clause: str, predicates: Predicates, before: tuple[bool, int] | None, last: int | None
) -> tuple[int | None, tuple[bool, int] | None, int | None]:
    """Return the thing that is the answer by a clause, the clause's predicate and its subject.

    `before` and `last` are the predicate and the subject of the previous clause.
    """
    if last is not None:
        clause = _IT.sub(f"X{last} ", clause)
    named = [(found.start(), int(found[1])) for found in THING.finditer(clause)]
    hits = [
        (found, holds)
        for holds, pattern in ((True, predicates.answer), (False, predicates.other))
        for found in pattern.finditer(clause)
    ]
    hits.sort(key=lambda hit: (hit[0].start(), -hit[0].end()))
    subject = named[-1][1] if named else last
    if not hits:
        if named and before and _ELLIPTIC.search(clause):
            holds = before[0] != is_negated(clause)
            return (named[0][1] if holds else 1 - named[0][1]), before, named[0][1]
        return None, before, named[0][1] if named else last
    found, holds = hits[0]
    if found[0] == "approached" and "approached by" in clause:
        holds = True
    earlier = [number for place, number in named if place < found.start()]
    later = [number for place, number in named if place >= found.start()]
    if len(set(earlier)) == 2 and not re.search(
        r"\b(?:of|to|than|by|from|with)\b", clause[: found.start()]
    ):
        return None, before, last
    if earlier:
        subject = earlier[0]
        if clause.startswith(("compared", "part of", "of the 2")) and len(set(earlier)) == 2:
            subject = earlier[-1]
    elif len(set(later)) == 2:
        attached = re.match(r"\W*(?:of |to |by )?(?:the )?X", clause[found.end() :])
        subject = later[1] if attached and found[0] not in ("first", "afterwards") else later[0]
    elif later:
        attached = re.match(r"\W*(?:of |to |by |than )?(?:the )?X", clause[found.end() :])
        is_preposition = found[0] in ("before", "after", "behind", "infront", "ontop", "following")
        subject = later[0]
        if attached and is_preposition:
            subject = 1 - later[0]
    elif last is None:
        return None, before, last
    else:
        subject = last
    assert subject is not None
    holds_here = holds != is_negated(clause)
    return (subject if holds_here else 1 - subject), (holds, subject), subject
