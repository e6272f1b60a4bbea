"""Reads sentences about a world: their words, clauses and certainty, and the options they state.

A sentence is read as a list of words, in which numbers are digits and synonyms are replaced. A
sentence that asks, doubts, assumes or reports asserts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from visenv.text.normalize import NUMBERS

from .things import COLORS, MATERIALS, SHAPES, SIZES, normal_words

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
