"""Reads sentences about a world: their words, their clauses, their polarity and their certainty.

A sentence is read as a list of words, in which numbers are digits and synonyms are replaced. A
sentence that asks, doubts, assumes or reports asserts nothing.
"""

from __future__ import annotations

import re

from visenv.text.normalize import NUMBERS

from .labels import normal_words

MOST_SENTENCES = 500
MOST_CHARACTERS = 1_000
"""The last 500 sentences of a text are read. Longer sentences than 1,000 characters are left out,
because the time of the rules grows with the square of the length."""

_CONTRACTIONS = (
    (re.compile(r"[’`]"), "'"),
    (re.compile(r"\b(?:can't|cannot)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\b(it|that|there|here|what|which|he|she|this|answer)'s\b"), r"\1 is"),
    (re.compile(r"'(?:re)\b"), " are"),
    (re.compile(r"'s\b"), " of_it "),
    (re.compile(r"->|→|=>"), " to "),
)
_END = re.compile(r"(?<=[.!?;\n])(?!\d)")
_PHRASES = tuple(
    (re.compile(rf"\b(?:{pattern})\b"), becomes)
    for pattern, becomes in (
        (
            r"if (?:you|we|i|one) (?:look|looks|compare|compares|count|counts|watch|watches)[^,]*",
            "",
        ),
        (r"(?:there is )?(?:no|without(?: a| any)?|beyond) (?:doubt|question)", "clearly"),
        (r"nothing (?:else )?(?:but|other than|except)", "only"),
        (r"can not be (?:denied|overlooked|missed)", "is clear"),
        (r"no longer", "after"),
        (r"not only", ""),
        (
            (
                r"(?:it|that) is (?:not|hardly) (?:true|the case|right|correct|so) that"
                r"|it is (?:false|wrong|untrue|incorrect|a lie|a mistake)(?: to say)? that"
                r"|(?:wrong|false|untrue|incorrect)(?: to say)? that|i (?:deny|disagree) that"
                r"|anything but|far from|by no means|in no way|hardly|no way|nowhere|not at all"
                r"|nobody|no one|nor|neither"
            ),
            "not",
        ),
        (r"in front", "infront"),
        (r"on top", "ontop"),
        (r"at rest", "resting"),
        (r"as well|of course", ""),
    )
)
_OPEN = re.compile(
    r"\b(?:may|might|could(?! not (?:see|find|spot))|maybe|perhaps|possibl[ey]|potentially"
    r"|probabl[ey]|likely|unlikely|presumably|supposedly|allegedly|apparently|seemingly|seems?"
    r"|guess|suppose|assume|assuming|suspect|wonder|whether|if|unless|would|should|unclear|unsure"
    r"|uncertain|unknown|doubt\w*|not (?:sure|certain|clear|known)|hope|imagine|pretend|depends"
    r"|hard to|difficult to|impossible to|can not (?:tell|say|decide|know|determine|judge|see (?:if"
    r"|whether|which))|not (?:tell|say|decide|know)|either"
    r"|(?:some|someone|somebody|people|others|everyone|many|they|one|he|she)(?: \w+)? (?:say|says"
    r"|said|think|thinks|claim|claims|believe|believes|argue|argues)"
    r"|nothing (?:suggests|shows|indicates)|(?:claim|statement|assertion|assumption|idea) that"
    r"|question|asks?|asked|about|around the number|roughly|approximately|almost|nearly|looking for"
    r"|search\w*|which (?:one|of)|what if|imagin\w+|expect\w*|i (?:need|want|have|must|should|will"
    r"|shall) (?:to )?\w+)\b"
)
"""Words of doubts, conditions, plans and reports."""

_ASKS = re.compile(r"^(?:is|are|does|do|did|was|were|has|had|can|could|which|what|where|who)\b")
_SPLIT = re.compile(
    r",|\b(?:and|but|so|because|since|while|whereas|although|though|therefore|thus|hence|then|as"
    r"|until|when|which|who)\b"
)
NEGATION = re.compile(r"\b(?:not|no|never|none|without|lacks?|nothing)\b")


class Sentence:
    """Holds a sentence as normalized text, if it asserts something.

    Attributes:
        text: The words, joined by blanks, with commas.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def clauses(self) -> list[str]:
        """Return the clauses in their order, without the words between them.

        A clause that begins with "then" keeps this word.
        """
        marked = re.sub(r"\bthen\b", ", afterwards", self.text)
        return [clause.strip() for clause in _SPLIT.split(marked) if clause and clause.strip()]


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text that assert something, in their order.

    Args:
        text: The text, of which the last `MOST_SENTENCES` sentences of at most `MOST_CHARACTERS`
            characters are read.
    """
    found: list[Sentence] = []
    for raw in _END.split(text)[-MOST_SENTENCES:]:
        if len(raw) > MOST_CHARACTERS:
            continue
        part = raw.casefold()
        for pattern, becomes in _CONTRACTIONS:
            part = pattern.sub(becomes, part)
        words = " , ".join(" ".join(_words(each)) for each in re.split(r"[,:()]", part))
        for pattern, becomes in _PHRASES:
            words = pattern.sub(becomes, words)
        words = re.sub(r"\s+", " ", words).strip(" ,")
        if not words or part.rstrip().endswith("?") or _OPEN.search(words) or _ASKS.match(words):
            continue
        found.append(Sentence(words))
    return found


def _words(text: str) -> list[str]:
    return [NUMBERS.get(word, word) for word in normal_words(text.replace("of_it", "ofit"))]


def is_negated(clause: str) -> bool:
    """Return whether a clause has an odd number of negations."""
    return len(NEGATION.findall(clause)) % 2 == 1
