"""Reads which of several candidates a text claims: options, truth values or responses.

The caller replaces each mention of a candidate by one character (`mention`) and calls
`claimed_label`. The text is read clause by clause. A clause that mentions a candidate asserts it,
denies it, or leaves it open:

- It asserts if it consists of a mention and of words that carry no content ("I think it is …"), if
  a declaring phrase precedes the mention ("the answer is …"), or if an affirming phrase follows it
  ("… is correct"). If it has other words, it asserts nothing, except for a `firm` mention, such as
  the text of an option.
- It denies after a negation or a contrast ("not …", "rather than …"), or before a rejection ("…
  is wrong").
- It leaves open in questions, conditions, doubts, first thoughts and the opinions of others.

The strongest assertions decide (`Level`). A correction ("no, …", "wait, …") discards what was said
before it. A list of candidates ("A or B") is no single one. Everything that is not understood is
left open, so that a reply is rather unread than misread. The time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Literal, NamedTuple

from visenv.text.phrases import CJK, simplified

MOST_LABELS = 255
_UNKNOWN = 255
_BARE, _MARKED, _TEXT, _LIST = 0xE000, 0xE100, 0xE200, 0xE300
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_ONE = "[\ue000-\ue2ff]"
_LETTER = "[\ue000-\ue0ff]"
_NAME = "[\ue000-\ue1ff]"
_WORDS = "[\ue200-\ue2ff]"
_SPACE = "[^\\w\ue000-\uf8ff]*"
"""Blanks and punctuation, but no mention."""

_ITEM = re.compile("[\ue000-\uf8ff]")
_MOST_ITEMS = 8
"""Mentions of a clause that are examined; a clause with more of them asserts nothing."""

_EMBEDDED = re.compile(f"(?<=[{CJK}]){_LETTER}|{_LETTER}(?=[{CJK}])")
_NOUN = r"(?:(?:the|an)\s)?(?:(?:option|answer|choice|response)s?\s?[#(]?)?"
_SINGULAR = r"(?=\s?(?:\w+s|was|would|could|can|might|may|should|did|had)\b)"
_JOIN = (
    r"(?:\s?[,/&+|]\s?(?:\(?(?:and/or|and|or|nor)\s)?"
    rf"|\s\(?(?:and/or|and|or|nor|as well as|through|to)\s){_NOUN}"
)
_LISTED = re.compile(
    rf"{_NAME}(?:{_JOIN}{_NAME}\)?|(?<={_LETTER})\s?{_LETTER}(?=\W|$))+"
    rf"|{_WORDS}(?:{_JOIN}{_WORDS}\)?|\s{_WORDS}(?=\W|$))+"
)
_OF_LIST = re.compile(r"\b(?:none|neither|all|each|both|any|one|either)(?: of)?\s?$")
_REPEATED = re.compile(rf"({_ONE})[\s):|-]{{0,4}}({_WORDS})")
_LAST_COMMA = re.compile(rf",\s?({_ONE})$")
_OR = re.compile(r"\b(?:or|nor)\b")

_HEADING = re.compile(
    r"\b(answer|choice|selection|judge?ment|verdict|conclusion)\b([ :*_#|-]*)\n+(?=\S)"
)
_SENTENCE = re.compile(r"([.!?。！？;\n]+)")
_CLAUSE = re.compile(
    rf"(,|\s-+\s|\((?!\s?{_ONE}\s?\))|(?<!{_ONE})\)"
    r"|\b(?:but(?! also)|however|so(?! (?:is|are|was|does|do)\b)|therefore|thus|hence|because|since|as|while|whereas|although|though|yet"
    r"|and|which|rather than|instead of|unlike|except(?: for)?|other than|apart from|aside from"
    rf"|besides|excluding)\b|\b(?:than|over)\s(?=(?:the\s)?(?:\w+\s)?#?{_ONE})"
    rf"|(?<={_ONE})\s(?=not\s(?:the\s)?(?:\w+\s)?#?{_ONE}))"
)
_MAIN = frozenset({"but", "however", "so", "therefore", "thus", "hence", "yet"})
_SUBORDINATE = frozenset({"because", "since", "as", "while", "whereas", "although", "though"})
_CONTRAST = re.compile(
    r"rather than|instead of|than|over|unlike|except|other than|apart from|aside from|besides"
    r"|excluding"
)

_EMPTY_WORDS = frozenset(
    """
    a absolutely again also alternative am an and ans answer answers appear appears are be been being
    believe best better both call called can certainly choice choices choose chose chosen claim clear
    clearly close completely conclude conclusion confident convinced correct decision definitely
    description did do does entirely even ever evidently exactly feel final finally first following
    follows fully go going good guess had has have hence here i indeed is it its judgement judgment
    just label leaving let letter like likely look looks me more most must my near obvious obviously
    of oh ok okay one ones only opinion opt option options or our overall own pick picked prefer
    preferred presumably probably quite rather really remain remains remotely reply response responses
    result said say seem seems select selected selection should simple so solution statement sure
    surely take text that the then there therefore these think this thought thus totally true
    undoubtedly us verdict very vote we well what which will winner would yes
    """.split()
)
"""Words that say nothing about the picture or the text that is judged."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[^\s\w.,:;!?()\[\]{}<>'\"*_#|=>→✅✓✔👉…-]")

_NEGATION = re.compile(
    r"\b(?:not|never|nowhere|opposite of|contrary to|neither|nor|no|none|nothing|without|reject\w*|rul\w+ out|eliminat(?:e|es|ed|ing)"
    r"|exclud\w+|discard\w*|dismiss\w*|avoid\w*|doubt\w*|disagree\w*|deny|denies|denied|against|untrue"
    r"|mistake|refuse\w*|fail\w*)\b"
)
_REJECTION = re.compile(
    r"\b(?:wrong|incorrect|untrue|false|out|eliminated|excluded|impossible|unlikely|too \w+"
    r"|least|fail\w*|distractors?|mistaken|invalid|worse|worst|contradict\w*|inaccurate|inferior|misses"
    r"|lacks?|bad)\b|[❌✗✘❎]"
)
_DENIED_AFTER = re.compile(
    rf"^{_SPACE}(?:(?:is|are|was|were|do|does|did|can|could|would|will|has|have|should|must|seems?|looks?"
    r"|appears?|to be|be|also|clearly|definitely|simply|just|both|all|obviously|certainly)\s)*"
    r"(?:not|never|no\b(?! other)|neither|(?:completely |totally |very |quite |just )?"
    rf"(?:{_REJECTION.pattern}))"
)
_OPEN = re.compile(
    r"\b(?:might|may|could|maybe|perhaps|possibly|possible|unsure|uncertain|unclear|either|half"
    r"|part|partly|partially|mostly|largely|almost|nearly|somewhat|to some (?:extent|degree)|(?<!more )(?<!most )plausible|tempting|tempted|candidates?"
    r"|potentially|supposed\w*|alleged\w*|reportedly|seemingly|theoretically|said to be|seemed|initially|originally|at first|first (?:thought|guess\w*"
    r"|said|impression|glance|instinct)|i thought|(?:was|were) going to|used to|say whether|second best|only better|merely better"
    r"|(?:so|neither|nor) (?:is|are|was|does|do)|would have|would like|tie[ds]?|equally|as good)\b"
)
_ASIDE = re.compile(r"\b(?:between|compar\w+|consider(?:ed|ing|s)?)\b")
_INFINITIVE = re.compile(rf"\bto be (?:\w+ )?{_ONE}")
_REPORTED = re.compile(
    r"\b(?!i\b)\w+ (?:said|says|claim(?:s|ed)|told|argue[sd]|stated|states|thinks|believes|wrote"
    r"|insists?)\b"
    r"|\b(?:claim|idea|notion|statement|assertion|belief|suggestion|thought)s? that\b|\bwhoever\b"
    r"|\b(?:some|everyone|everybody|many|people|others?|they|he|she|someone|one|critics)\b(?: \w+){0,3}?"
    r" (?:say|says|said|think|thinks|thought|claim|claims|claimed|argue|argues|believe|believes|choose"
    r"|pick|write|writes|expect|suggest|suggests)\b"
)
_DOUBT = re.compile(
    r"[^\w]*(?:(?:but|i|am|is|it|this|or|really|quite|though|about|that|of|still|for|sure|also)\b[^\w]*)*"
    r"(?:maybe|perhaps|possibly|unsure|uncertain|unclear)\b"
)
"""A clause of doubt about what the sentence said before: ``…, but I am not sure``."""

_CONDITION = re.compile(r"\b(?:if|unless|whether|suppose|assum(?:e|ing)|in case)\b")
_CORRECTION = re.compile(
    rf"^{_SPACE}(?:(?:oh|hmm|well|and|or)\b{_SPACE})?"
    rf"(?:(no|nope)(?={_SPACE}$|\s(?:wait|it|the|that|this|i)\b|\s?[-,:])"
    r"|(wait|hold on|scratch that|strike that|oops|i (?:was|am) wrong|i take (?:that|it) back|i made (?:a mistake|an error))\b"
    r"|(?:actually|rather|i mean|i meant|sorry|my mistake|correct(?:ion|ing)|edit(?:ed)?|update|erratum|on second thoughts?|make (?:that|it)"
    rf"|changed? my mind|better said)\b){_SPACE}"
)
_NO_BEFORE = re.compile(rf"^{_SPACE}no\s{_ONE}")
_DISMISSED = re.compile(
    rf"^{_SPACE}(?:(?:still|also|actually|clearly|simply|just|but|and|is|was|are|which|that|this|it)\s)*"
    r"(?:wrong|incorrect|false|untrue|ruled out|out of the question|not (?:right|correct|true|it"
    r"|the (?:answer|right|correct)))\b"
)
"""A clause that rejects what the clause before it names: ``B is close, but still wrong``."""

_REVERSED = re.compile(
    r"\b(?:is|was|are|would be|seems)\s(?:\w+\s)?(?:false|wrong|incorrect|untrue|a lie|a mistake"
    r"|not true|not right|not correct|not the case)\b"
)
_DANGLING = re.compile(r"\b(?:not|never)\s?$")
"""The end of a clause that a parenthesis interrupts: ``It is not, in fact, true``."""

_RETRACTED = re.compile(
    rf"^{_SPACE}(?:but )?(?:that|this|it) (?:is|was|can) (?:actually )?(?:not (?:right|correct|true|be right)"
    rf"|wrong|incorrect|a mistake){_SPACE}$"
)


class Level(IntEnum):
    """How strongly a clause asserts a candidate."""

    WITHIN = 0
    """A firm mention in a clause with other words: ``The ball is blue``."""
    BARE = 1
    """A mention alone, as a label or with empty words: ``I think it is B``."""
    DECLARED = 2
    """A mention with a declaring or affirming phrase: ``The answer is B``."""


class Grammar(NamedTuple):
    """Holds the phrases of one kind of candidates; patterns of case folded, `simplified` text.

    Attributes:
        declaring: Matches phrases that may precede a mention, with empty words between them.
        affirming: Matches phrases directly after a mention that assert it.
        valued: Matches the beginning of a declaration that must be followed by a candidate; another
            value, as in ``Final answer: unknown``, is a declaration of none.
        complements: Whether there are two labels, 0 and 1, and to deny one asserts the other.
        last_counts: Whether the last of several declarations counts, or contradictory ones cancel.
        bare: Whether a mention with only empty words asserts (`Level.BARE`).
    """

    declaring: re.Pattern[str]
    affirming: re.Pattern[str]
    valued: re.Pattern[str] | None = None
    complements: bool = False
    last_counts: bool = True
    bare: bool = True


class _Claim(NamedTuple):
    labels: tuple[int, ...]
    denied: bool = False
    level: Level = Level.WITHIN
    corrects: bool = False
    retracts: bool = False


_NONE = _Claim((_UNKNOWN,), level=Level.DECLARED)
"""A declaration of something that is no candidate."""


def without_private(text: str) -> str:
    """Return the text without the characters that stand for mentions."""
    return text if text.isascii() else _PRIVATE.sub("\ufffd", text)


def mention(label: int | None, kind: Literal["bare", "marked", "text"] = "bare") -> str:
    """Return the character for a mention of a candidate.

    Args:
        label: The index of the candidate, below `MOST_LABELS`; None for one that does not exist.
        kind: ``"bare"`` for a name that can be part of a sentence with another meaning (``B``);
            ``"marked"`` for a name in brackets (``(B)``); ``"text"`` for the candidate's own text.
            The latter two are firm.
    """
    first = {"bare": _BARE, "marked": _MARKED, "text": _TEXT}[kind]
    return chr(first + (_UNKNOWN if label is None else label))


def claimed_label(text: str, grammar: Grammar) -> int | None:
    """Return the index of the candidate that a text with mentions claims, or None.

    None means that the text claims no candidate, several ones, or one that does not exist.
    """
    claims = list(_claims(text, grammar))
    ends = [place for place, claim in enumerate(claims) if claim.corrects or claim.retracts]
    for start in (*reversed(ends), -1):
        after = claims[start + 1 :]
        if any(not claim.denied and claim.labels for claim in after):
            label = _decided(after, grammar)
            return None if label == _UNKNOWN else label
        if start >= 0 and claims[start].retracts:
            return None
    return None


def claimed_list(text: str, grammar: Grammar) -> tuple[int, ...]:
    """Return the indices of the candidates that a text claims together, sorted; empty if unclear.

    Candidates belong together if "and", a comma or a similar mark connects them, not "or".
    """
    asserted = [claim for claim in _claims(text, grammar) if not claim.denied and claim.labels]
    level = max((claim.level for claim in asserted), default=Level.WITHIN)
    strongest = [claim.labels for claim in asserted if claim.level == level]
    if not strongest:
        return ()
    last = strongest[-1] if grammar.last_counts and level == Level.DECLARED else None
    labels = set(last or (label for each in strongest for label in each))
    return () if _UNKNOWN in labels else tuple(sorted(labels))


def _decided(claims: Sequence[_Claim], grammar: Grammar) -> int | None:
    asserted = [claim for claim in claims if not claim.denied and claim.labels]
    level = max(claim.level for claim in asserted)
    strongest = [claim for claim in asserted if claim.level == level]
    if level == Level.DECLARED and grammar.last_counts:
        strongest = strongest[-1:]
    elif grammar.last_counts and len(strongest[-1].labels) == 1:
        # A list of all options, or "A or B", comes before the choice.
        listed = [place for place, claim in enumerate(strongest) if len(claim.labels) > 1]
        strongest = strongest[max(listed, default=-1) + 1 :]
    labels = {label for claim in strongest for label in claim.labels}
    if len(labels) != 1:
        return None
    (label,) = labels
    place = max(place for place, claim in enumerate(claims) if claim is strongest[-1])
    denied = (claim.labels for claim in claims[place:] if claim.denied)
    return None if any(label in each for each in denied) else label


def _claims(text: str, grammar: Grammar) -> Iterator[_Claim]:
    """Yield the claims of a text in their order."""
    plain = simplified(re.sub(r"[^\S\n]+", " ", text).casefold())
    plain = _HEADING.sub(r"\1\2 ", _EMBEDDED.sub("\ufffd", plain))
    plain = _REPEATED.sub(_once, plain)
    lists: list[tuple[int, ...]] = []
    plain = _LISTED.sub(lambda found: _list(found, plain, lists), plain)
    parts = _SENTENCE.split(plain)
    for sentence, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        yield from _sentence(sentence, grammar, lists, asked="?" in end or "？" in end)


def _once(found: re.Match[str]) -> str:
    """Return one mention for a label and its text: ``(B) blue``."""
    same = ord(found[1]) % 0x100 == ord(found[2]) % 0x100 != _UNKNOWN
    return found[1] if same else found[0]


def _list(found: re.Match[str], text: str, lists: list[tuple[int, ...]]) -> str:
    """Return the character for a list of mentions, and keep its labels.

    The last mention after a comma is not part of the list if it is the subject of a clause: ``B, C
    is wrong``.
    """
    written, rest = found[0], ""
    last = _LAST_COMMA.search(written)
    before = text[max(0, found.start() - 12) : found.start()]
    after = text[found.end() : found.end() + 20]
    if last and re.match(_SINGULAR, after) and not _OF_LIST.search(before):
        written, rest = written[: last.start()], last[0]
    labels = tuple(dict.fromkeys(ord(each) % 0x100 for each in _ITEM.findall(written)))
    if len(labels) == 1:
        return _ITEM.findall(written)[0] + rest
    lists.append((_UNKNOWN, _UNKNOWN) if _OR.search(written) else labels)
    return chr(_LIST + min(len(lists), 0xF8FF - _LIST) - 1) + rest


def _sentence(
    sentence: str, grammar: Grammar, lists: Sequence[tuple[int, ...]], *, asked: bool
) -> list[_Claim]:
    """Return the claims of a sentence."""
    opened = subordinate = False
    unfinished = ""
    named: tuple[int, ...] = ()
    parts = _CLAUSE.split(sentence)
    conditions = _conditions(parts)
    said: list[_Claim] = []
    for place, (word, clause) in enumerate(zip(["", *parts[1::2]], parts[::2], strict=True)):
        word = word.strip()
        if word in _MAIN:
            opened = subordinate = False
        elif word in _SUBORDINATE:
            subordinate = True
        elif word == "," and subordinate and parts[0].strip() == "":
            subordinate = False
        correction = _CORRECTION.match(clause)
        if correction:
            clause = clause[correction.end() :]
            # "No:" may begin a list of objections. It discards no verdict, but contradicts it.
            if grammar.last_counts or not correction[0].endswith(("no: ", "no:")):
                said.append(_Claim((), corrects=True, retracts=bool(correction[1] or correction[2])))
            opened = subordinate = False
        elif _RETRACTED.match(clause) or _NO_BEFORE.match(clause):
            said.append(_Claim((), retracts=True))
        elif named and _DISMISSED.match(clause):
            said += [_Claim((), retracts=True)] if grammar.complements else [_Claim(named, denied=True)]
        opening = (
            _OPEN.search(clause)
            or _is_infinitive(clause)
            or _REPORTED.search(_ITEM.split(clause, maxsplit=1)[0])
            or (_ITEM.search(clause) and _ASIDE.search(clause))
        )
        opened = opened or opening is not None
        if unfinished and word == ",":
            item = _ITEM.search(clause)
            if item is None:
                continue
            clause = unfinished + clause if clause[: item.start()].isspace() else clause
        unfinished = clause if _DANGLING.search(clause) and not _ITEM.search(clause) else ""
        if _CONTRAST.fullmatch(word):
            said += [_Claim(labels, denied=True) for labels in _labels(clause, lists)]
            continue
        claims = _clause(clause, grammar, lists)
        if asked or opened or conditions[place]:
            claims = [each for each in claims if not asked and each == _NONE]
        said += [each for each in claims if each.denied or not subordinate]
        if opening and _DOUBT.match(clause):
            said = [each for each in said if each.denied or not each.labels]
        named = next(reversed([*_labels(clause, lists)]), named)
        if opening and _ITEM.search(clause):
            opened = False  # a doubt about one candidate does not concern the next clause
    return said


def _conditions(parts: Sequence[str]) -> list[bool]:
    """Return whether each clause depends on a condition: up to the next "so" or "but"."""
    conditions: list[bool] = []
    begin = 0
    for place in range(0, len(parts) + 1, 2):
        ends = place + 1 >= len(parts) or parts[place + 1].strip() in _MAIN
        if ends and place < len(parts):
            clauses = parts[begin : place + 1]
            found = any(_CONDITION.search(each) for each in clauses)
            conditions += [found] * ((len(clauses) + 1) // 2)
            begin = place + 2
    return conditions


def _labels(clause: str, lists: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    for item in _ITEM.findall(clause):
        code = ord(item)
        yield lists[code - _LIST] if code >= _LIST else (code % 0x100,)


def _clause(clause: str, grammar: Grammar, lists: Sequence[tuple[int, ...]]) -> list[_Claim]:
    """Return what a clause asserts or denies."""
    items = list(_ITEM.finditer(clause))
    if not items:
        return _without_candidate(clause, grammar)
    if len(items) > _MOST_ITEMS:
        return []
    claims = []
    for item, labels in zip(items, _labels(clause, lists), strict=True):
        before, after = clause[: item.start()], clause[item.end() :]
        firm = ord(item[0]) >= _MARKED
        claim = _stance(before, after, grammar, firm=firm, alone=len(items) == 1)
        if claim is not None:
            denied, level = claim
            if denied and grammar.complements and len(labels) == 1 and labels[0] != _UNKNOWN:
                denied, labels = False, (1 - labels[0],)
            claims.append(_Claim(labels, denied=denied, level=level))
    return claims


def _without_candidate(clause: str, grammar: Grammar) -> list[_Claim]:
    found = grammar.valued and grammar.valued.search(clause)
    if not found or _are_empty(clause[found.end() :]):
        return []
    return [_NONE]


def _stance(
    before: str, after: str, grammar: Grammar, *, firm: bool, alone: bool
) -> tuple[bool, Level] | None:
    """Return whether a clause denies a mention, and the level; None if it leaves it open."""
    head, colon, tail = before.rpartition(":")
    negation = _last(_NEGATION, before)
    if colon and _are_empty(tail) and _are_empty(after) and grammar.bare:
        about_other = negation is not None and not _are_empty(before[negation.end() :])
        if (negation is None or about_other) and not _last(_REJECTION, head):
            declared = _last(grammar.declaring, head)
            is_declared = declared is not None and _are_empty(head[declared.end() :])
            return False, Level.DECLARED if is_declared else Level.BARE
    if negation is not None:
        between = before[negation.end() :].replace(" to be ", " be ")
        return (True, Level.BARE) if _are_empty(between) else None
    rejection = None if grammar.complements else _last(_REJECTION, before)
    if rejection is not None and _are_empty(before[rejection.end() :]):
        return True, Level.BARE
    if _DENIED_AFTER.match(after) or _REJECTED_END.search(after):
        return True, Level.BARE
    if _REVERSED.search(after):
        return None  # "the claim that B is right is false"
    declaring = _last(grammar.declaring, before)
    if declaring is not None and _are_empty(before[declaring.end() :]):
        return False, Level.DECLARED
    introduced = colon and not _ITEM.search(head) and _are_empty(tail)
    if not _are_empty(before) and not introduced:
        return (False, Level.WITHIN) if firm and not _NEGATION.search(after) else None
    if grammar.affirming.match(after):
        return False, Level.DECLARED
    if grammar.bare and alone and (_are_empty(after) or _LABELED.match(after)):
        return False, Level.BARE
    return (False, Level.WITHIN) if firm and not _NEGATION.search(after) else None


_REJECTED_END = re.compile(r"[❌✗✘❎]|^\s?[:)|-].{0,200}\b(?:too \w+|wrong|incorrect)\b")
_LABELED = re.compile(r"^\s?[:).\]|]")


def _is_infinitive(clause: str) -> bool:
    """Return whether a candidate is only the goal of a clause: ``too good to be true``."""
    found = _INFINITIVE.search(clause)
    return found is not None and not _NEGATION.search(clause[: found.start()])


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):
        pass
    return found


def _are_empty(text: str) -> bool:
    """Return whether a text contains only words without content, and no candidate."""
    return not _ITEM.search(text) and all(
        word in _EMPTY_WORDS for word in _WORD.findall(text)
    )
