"""Decides whether a clause asserts a candidate, denies it, or leaves it open.

The clause is `visenv.text.phrases.simplified` text, in which characters stand for mentions
(`visenv.text.mentions`). All patterns are about the words around a mention.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from visenv.text.mentions import ITEM, NAME, ONE, SPACE, is_words


class Level(IntEnum):
    """Orders assertions of a candidate by their strength."""

    WITHIN = 0
    """A firm mention in a clause with other words: ``The ball is blue``."""
    BARE = 1
    """A mention alone, as a label or with empty words: ``I think it is B``."""
    DECLARED = 2
    """A mention with a declaring or affirming phrase: ``The answer is B``."""


class ClaimPhrases(NamedTuple):
    """Holds the phrases of one kind of candidates, as patterns.

    Attributes:
        declaring: Matches phrases that may precede a mention, with empty words between them.
        affirming: Matches phrases directly after a mention that assert it.
        valued: Matches the beginning of a declaration that must name a candidate; another value, as
            in ``Final answer: unknown``, is a declaration of none.
        opening: Matches further words that leave a clause open.
        within: Matches what must precede a firm mention in a clause with other words.
        complements: Whether there are two labels, 0 and 1, and to deny one asserts the other.
        last_counts: Whether the last of several declarations counts; otherwise, contradictory
            declarations cancel each other.
        bare: Whether a mention with only empty words asserts (`Level.BARE`).
    """

    declaring: re.Pattern[str]
    affirming: re.Pattern[str]
    valued: re.Pattern[str]
    opening: re.Pattern[str] = re.compile(r"(?!)")
    within: re.Pattern[str] = re.compile("")
    complements: bool = False
    last_counts: bool = True
    bare: bool = True


_WITHOUT_CONTENT = """
    a absolutely again also alternative am an and ans answer answers appear appears are be been
    being believe best better both call called can certain certainly choice choices choose chose
    chosen claim clear clearly close completely conclude conclusion confident convinced correct
    decision definitely description did do does entirely even ever evidently exactly fairly feel
    final finally first following follows fully go going good guess had has have hence here hold i
    indeed is it its judgement judgment just label lean leaving let letter like likely literally
    look looks me more most must my near obvious obviously of oh ok okay one ones only opinion opt
    option options or our overall own pick picked plainly positive prefer preferred presumably
    pretty probably quite rather really remain remains remotely reply response responses result ring
    said say seem seems select selected selection should simple simply so solution statement
    strictly sure surely take text that the then there therefore these think this thought thus
    totally true undoubtedly us verdict very vote we well what which will winner would yes
"""
"""Words that say nothing about the picture or the text. Prepositions are not among them: "in B"."""

_EMPTY_WORDS = frozenset(_WITHOUT_CONTENT.split())
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[^\s\w.,:;!?()\[\]{}<>'\"*_#|=>→⇒✅✓✔👉…-]")

_NEGATION = re.compile(
    r"\b(?:not|never|nowhere|neither|nor|no|none|nothing|without|opposite of|contrary to|against"
    r"|reject\w*|rul\w+ out|eliminat(?:e|es|ed|ing)|exclud\w+|discard\w*|dismiss\w*|avoid\w*"
    r"|doubt\w*|disagree\w*|deny|denies|denied|untrue|mistake|refuse\w*|fail\w*"
    r"|(?<!a )(?:little|few)|withdr[ae]w\w*|retract\w*|revok\w+|disregard\w*|ignor\w+|abandon\w*"
    r"|last (?:thing|one|option|choice|answer) (?:that )?i)\b"
)
"""Words before a mention that deny it."""

_REJECTION = re.compile(
    r"\b(?:wrong|incorrect|untrue|false|out|eliminated|excluded|impossible|unlikely|too \w+|least"
    r"|fail\w*|distractors?|mistaken|invalid|worse|worst|contradict\w*|inaccurate|inferior|misses"
    r"|lacks?|bad|gone|absent|missing)\b|[❌✗✘❎]"
)
"""Words before or after a mention that call it wrong."""

_DENIED_AFTER = re.compile(
    rf"^{SPACE}(?:(?:is|are|was|were|do|does|did|can|could|would|will|has|have|should|must|seems?"
    r"|looks?|appears?|to be|be|also|clearly|definitely|simply|just|both|all|obviously|certainly)"
    r"\s)*"
    r"(?:not\b|never\b|no\b(?! other)|neither|(?:completely |totally |very |quite |just )?"
    rf"(?:{_REJECTION.pattern}))|[❌✗✘❎]|^\s?[:)|-].{{0,200}}\b(?:too \w+|wrong|incorrect)\b"
)
"""Words after a mention that deny it or call it wrong: ``B is clearly not``, ``B: too long``."""

_REVERSED_AFTER = re.compile(
    r"\b(?:is|was|are|would be|seems)\s(?:\w+\s)?(?:false|wrong|incorrect|untrue|a lie|a mistake"
    r"|not true|not right|not correct|not the case)\b"
)
"""A second predicate: ``The claim that B is right is false``."""

_LABEL_END = re.compile(r"^\s?[:).\]|]")
"""A mark after a label, before the text of its option: ``B) …``."""

_UNSURE = re.compile(
    r"\b(?:might|may|could|maybe|perhaps|possibly|possible|unsure|uncertain|unclear|either|half"
    r"|part|partly|partially|mostly|largely|almost|nearly|somewhat|to some (?:extent|degree)"
    r"|(?<!more )(?<!most )plausible|candidates?|potentially|supposed\w*|alleged\w*|reportedly"
    r"|seemingly|theoretically|said to be|seemed|would have|would like|tie[ds]?|equally|as good"
    r"|sometimes|often|occasionally|can be|(?!100)\d{1,3} ?(?:%|percent)|second best|only better"
    r"|merely better|hope|wish|prove|imagine|pretend|depends|say whether"
    r"|(?:so|neither|nor) (?:is|are|was|does|do)"
    r"|tempting|tempted|initially|originally|at first|i thought|(?:was|were) going to|used to"
    r"|first (?:thought|guess\w*|said|impression|glance|instinct)"
    r"|(?:will|have|had) (?:\w+ )?(?:been|chosen|picked|selected|said|preferred)|will be"
    r"|in (?:some|many|certain|most) (?:respects|ways|aspects|cases|parts)"
    r"|also (?:right|correct|true|fits|matches|works))(?!\w)"
)
"""Doubts, degrees, and first thoughts."""

_TASK = "question|problem|task|exercise|puzzle|riddle"
_DECISION = (
    "(?:answer|choice|option|pick|guess|opinion|response|selection|verdict|judge?ment|vote"
    "|money)\\b"
)
_REPORTED = re.compile(
    r"\b(?!i\b)\w+ (?:said|says|claim(?:s|ed)|told|argue[sd]|stated|states|thinks|believes|wrote"
    r"|insists?)\b|\bwhoever\b"
    r"|\b(?:claim|idea|notion|statement|assertion|belief|suggestion|thought)s? that\b"
    r"|\b(?:some|everyone|everybody|many|people|others?|they|someone|one|critics)\b(?: \w+){0,3}?"
    r" (?:say|think|thought|claim|argue|believe|choose|pick|write|expect|suggest|suggests|rate"
    r"|judge|call|consider|find|rank|prefer|mark)\b"
    r"|\b(?!(?:i|we|was|is|be|been|have|had)\b)\w+ (?:judged|judges|called|calls|rated|considers"
    r"|considered (?:it|this|that|the)|heard|would (?:say|call|choose|pick|prefer))\b"
    r"|\b(?:i|we) (?:heard|was told|were told|have been told)\b"
    r"|\b(?:user|expected|gold|reference|ground truth)\s?:"
    r"|\b(?:caption|title|question|user|hint|prompt) (?:mentions|suggests|says|lists|claims)\b"
    r"|\baccording to (?!(?:the|this|that|my|our|its|these|what|line|page|table|figure|chart)\b)"
    rf"|\b(?:his|her|their|your|(?!{_TASK}|today)\w+'s) (?:\w+ )?{_DECISION}"
    r"|\b(?:common|commonest|popular|usual|typical|frequent|previous|earlier|old|other|alternative"
    r"|naive|second|third|next|runner-up|opposite|opposing|initial|original|tentative"
    rf"|(?<=my )first) (?:\w+ )?{_DECISION}"
)
"""Opinions and answers of others, before a mention."""

_READS = re.compile(
    r"\b(?:it|sign|text|label|plate|board|banner|poster|screen|display|shirt|logo|page|inscription)"
    r" (?:says|reads|states)\b"
)
"""A quotation of text in a picture is no opinion: ``The sign says stop``."""

_VERB = re.compile(
    r"(?:prefer|choose|chose|chosen|pick|select|vote|favou?r|go|went|opt|settle|decide|lean|stick|bet"
    r"|say)(?:e?d)?\b"
)
"""Verbs of choice, whose subject may be somebody else: ``Most people prefer``."""

_SPEAKER = re.compile(r"\b(?:i|we|us|me|let|you should)\b")
"""Subjects of a choice that the reply itself makes."""

_TO = re.compile(r"\bto(?: \w+ly)?\s?$")
"""The beginning of an infinitive, before its verb: ``to``, ``to simply``."""

_INTENDED = re.compile(
    r"\b(?:going|have|has|need|inclined|decided?|tend|safe|safest|reasonable|logical|best|sensible"
    r"|natural|sense|leads?|led|forced|ready|choice is|option is|letter|option|answer)"
    r"(?: (?:me|us))? to(?: \w+ly)?\s?$"
)
"""An infinitive with which the reply makes its choice: ``I am inclined to choose``."""

_LIMITED = re.compile(
    rf"(?:{ONE}|\b(?:right|correct|true|better|best))\s(?:only (?:on|in|if|when|for|at)|when"
    r"|whenever|as long|until|up to|in (?:theory|principle|some|a sense|part|parts|certain)"
    r"|to (?:some|a certain|a) (?:extent|degree))\b"
)
"""A claim that holds in some cases only: ``B is right when …``."""

_ABOUT = re.compile(rf"{NAME} (?:requires|needs|says|claims|mentions|states|suggests|contains)\b")
"""A sentence about the text of an option: ``B requires a blue bus``."""

_COMPARED = re.compile(r"\b(?:between|compar\w+|consider(?:ed|ing))\b")
"""A comparison without its result: ``between A and B``."""

_INFINITIVE = re.compile(rf"\bto be (?:\w+ )?{ONE}")
"""A mention in an infinitive: ``too good to be true``."""


def stance(
    before: str, after: str, phrases: ClaimPhrases, *, firm: bool, alone: bool
) -> tuple[bool, Level] | None:
    """Return whether a clause denies a mention, and how strongly; None if it leaves it open.

    Args:
        before: The clause before the mention.
        after: The clause after it.
        phrases: The phrases of the kind of candidates.
        firm: Whether the mention can be nothing else.
        alone: Whether it is the only mention of the clause.
    """
    introduced = _introduced(before, after, phrases)
    if introduced is not None:
        return False, introduced
    negation = _last(_NEGATION, before)
    if negation is not None and phrases.complements and ":" in before[negation.end() :]:
        negation = None  # "one check fails: False"
    if negation is not None:
        between = before[negation.end() :].replace(" to be ", " be ")
        return (True, Level.BARE) if are_empty(between) else None
    if (not phrases.complements and _ends_with(_REJECTION, before)) or is_rejected(after):
        return True, Level.BARE
    level = _level(before, after, phrases, firm=firm, alone=alone)
    return None if level is None or _REVERSED_AFTER.search(after) else (False, level)


def _introduced(before: str, after: str, phrases: ClaimPhrases) -> Level | None:
    """Return the level of a mention at the end of a clause after a colon: ``It is green: B``.

    A negation before the colon counts only if it concerns the mention: "not correct: B".
    """
    head, colon, tail = before.rpartition(":")
    if not (colon and phrases.bare and are_empty(tail) and are_empty(after)):
        return None
    if _ends_with(_NEGATION, before) or _REJECTION.search(head):
        return None
    return Level.DECLARED if _ends_with(phrases.declaring, head) else Level.BARE


def _level(
    before: str, after: str, phrases: ClaimPhrases, *, firm: bool, alone: bool
) -> Level | None:
    """Return how strongly a clause without a negation asserts a mention; None if it does not."""
    head, colon, tail = before.rpartition(":")
    declared = _last(phrases.declaring, before)
    if declared is not None and are_empty(before[declared.end() :]):
        own = not _VERB.match(declared[0]) or _is_of_the_speaker(before[: declared.start()])
        return Level.DECLARED if own else None
    if are_empty(before) or (colon and are_empty(tail) and not ITEM.search(head)):
        if phrases.affirming.match(after):
            return Level.DECLARED
        if phrases.bare and alone and (are_empty(after) or _LABEL_END.match(after)):
            return Level.BARE
    is_within = firm and not _NEGATION.search(after) and _ends_with(phrases.within, before)
    return Level.WITHIN if is_within else None


def _is_of_the_speaker(before: str) -> bool:
    """Return whether a verb of choice after these words is a choice of the reply itself.

    ``Most people prefer``, ``it is hard to prefer`` and ``I want to choose`` are none.
    """
    if _TO.search(before):
        return _INTENDED.search(before) is not None
    return are_empty(before) or _SPEAKER.search(before) is not None


def is_rejected(after: str) -> bool:
    """Return whether the words after a mention deny or reject it."""
    return _DENIED_AFTER.search(after) is not None


def is_open(clause: str, phrases: ClaimPhrases) -> bool:
    """Return whether a clause asserts nothing: a doubt, a first thought or an opinion of others."""
    mentioned = ITEM.search(clause)
    before = clause[: mentioned.start()] if mentioned else clause
    goal = _INFINITIVE.search(clause)
    reads = mentioned and is_words(mentioned[0]) and not phrases.complements
    return bool(
        _UNSURE.search(clause)
        or _LIMITED.search(clause)
        or _ABOUT.search(clause)
        or phrases.opening.search(clause)
        or (_REPORTED.search(before) and not (reads and _READS.search(before)))
        or (mentioned and _COMPARED.search(clause))
        or (goal and not _NEGATION.search(clause[: goal.start()]))
    )


def are_empty(text: str) -> bool:
    """Return whether a text contains only words without content, and no mention."""
    return not ITEM.search(text) and all(word in _EMPTY_WORDS for word in _WORD.findall(text))


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007 - the last match is used after the loop
        pass
    return found


def _ends_with(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text ends with a match of the pattern and empty words."""
    found = _last(pattern, text)
    return found is not None and are_empty(text[found.end() :])
