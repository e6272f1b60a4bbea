"""Reads which of several candidates a text claims: options, truth values or responses.

The caller replaces each mention of a candidate by one character (`visenv.text.mentions`) and calls
`claimed_label`. The text is read clause by clause. A clause that mentions a candidate asserts it,
denies it, or leaves it open (`visenv.text.stance`):

- It asserts if it consists of a mention and of words that carry no content ("I think it is …"), if
  a declaring phrase precedes the mention ("the answer is …"), or if an affirming phrase follows it
  ("… is correct"). If it has other words, it asserts nothing, except for a firm mention, such as
  the text of an option.
- It denies after a negation or a contrast ("not …", "rather than …"), or before a rejection ("… is
  wrong").
- It leaves open in questions, conditions, doubts, first thoughts and the opinions of others.

The strongest assertions decide (`visenv.text.stance.Level`). A correction ("no, …", "wait, …")
discards all earlier claims. A list of candidates ("A or B") claims none of them alone. Clauses that
are not understood are left open: a reply without a claim is better than a wrong claim. The time is
linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from visenv.text.mentions import ITEM, ONE, SPACE, UNKNOWN, Labels, is_firm, labels_in, with_lists
from visenv.text.phrases import simplified
from visenv.text.stance import ClaimPhrases, Level, are_empty, is_open, is_rejected, stance

_MOST_ITEMS = 8
"""Maximum number of mentions in a clause; a clause with more of them claims nothing."""

_BLANKS = re.compile(r"[^\S\n]+")
_HEADING = re.compile(
    r"\b(answer|choice|selection|judge?ment|verdict|conclusion)\b([ :*_#|-]*)\n+(?=\S)"
)
"""A heading whose value is on the next line."""

_SENTENCE = re.compile(r"([.!?。！？;\n]+)")
"""Splits a text into sentences, and keeps the marks between them."""

_CLAUSE = re.compile(
    rf"(,|\s-+\s|\((?!\s?{ONE}\s?\))|(?<!{ONE})\)"
    r"|\b(?:but(?! also)|however|(?<!think )(?<!believe )so(?! (?:is|are|was|does|do)\b)"
    r"|therefore|thus|hence|because|since"
    r"|as|while|whereas|although|though|yet|and|which|rather than|instead of|unlike|except(?: for)?"
    r"|other than|apart from|aside from|besides|excluding)\b"
    rf"|\b(?:than|over)\s(?=(?:the\s)?(?:\w+\s)?#?{ONE})"
    rf"|(?<={ONE})\s(?=not\s(?:the\s)?(?:\w+\s)?#?{ONE}))"
)
"""Splits a sentence into clauses, and keeps the words between them."""

_MAIN = frozenset({"but", "however", "so", "therefore", "thus", "hence", "yet"})
"""Words that begin a main clause, which doubts and conditions before them do not concern."""

_SUBORDINATE = frozenset({"because", "since", "as", "while", "whereas", "although", "though"})
"""Words that begin a subordinate clause, which asserts no candidate."""

_EXCEPTION = frozenset(
    {"except", "except for", "other than", "apart from", "aside from", "besides"}
)
"""Words before a candidate that a rejection does not concern: ``all except C are wrong``."""

_CONTRAST = _EXCEPTION | {"than", "over", "unlike", "excluding", "rather than", "instead of"}
"""Words before a candidate that is denied: ``B rather than C``."""

_CONDITION = re.compile(
    r"\b(?:if|unless|whether|suppose|assum(?:e|ing)|in case|provid(?:ed|ing) that)\b"
    r"|^[^\w]*(?:provided|providing)\b"
    r"|^[^\w]*(?:were|had(?! to\b)|should(?! be\b))\s"
)
"""A condition: the clauses from the last main clause to the next one assert nothing."""

_WHEN = re.compile(r"[^\w]*when\b")
"""Several clauses with "when" distinguish cases; one tells what the reply did."""

_CORRECTION = re.compile(
    rf"^{SPACE}(?:(?:oh|hmm|well|and|or)\b{SPACE})?"
    rf"(?:(?P<retracts>(?:no|nope)(?={SPACE}$|\s(?:wait|it|the|that|this|i)\b|\s?[-,:])"
    r"|(?:wait|hold on|scratch that|strike that|oops|i (?:was|am) wrong|i take (?:that|it) back"
    r"|i made (?:a mistake|an error))\b)"
    r"|(?:actually|rather|or better|better said|i mean|i meant|sorry|er+|uh|um|my mistake|update"
    r"|correct(?:ion|ing)|edit(?:ed)?|erratum|changed? my mind"
    r"|on (?:second thoughts?|reflection|closer (?:look|inspection))"
    rf"|make (?:that|it)|now(?=\s(?:{ONE}|i\b|it is\b|the answer\b)))\b){SPACE}"
)
"""Words at the beginning of a clause that discard what was said before: ``wait``, ``or rather``."""

_RETRACTION = re.compile(
    rf"^{SPACE}(?:no\s{ONE}|(?:but )?(?:that|this|it) (?:is|was|can) (?:actually )?"
    rf"(?:not (?:right|correct|true|be right)|wrong|incorrect|a mistake){SPACE}$)"
)
"""A whole clause that discards what was said before: ``…, but that is wrong``."""

_DISMISSAL = re.compile(
    rf"^{SPACE}(?:(?:still|also|actually|clearly|simply|just|but|and|is|was|are|which|that|this|it)"
    r"\s)*(?:wrong|incorrect|false|untrue|ruled out|out of the question"
    r"|not (?:right|correct|true|it|really|the (?:answer|right|correct))|said not"
    r"|i (?:do not think so|do not believe so|doubt (?:it|that)|(?:guess|think|suppose) not))\b"
)
"""A clause that rejects what the clause before it names: ``B is close, but still wrong``."""

_CONTRADICTION = re.compile(rf"^{SPACE}(?:(?:actually|it|this|that|is|was|does|did)\s)*not{SPACE}$")
"""A clause after "but" that rejects what the clause before it names: ``…, but it is not``."""

_DOUBT = re.compile(
    r"[^\w]*(?:(?:but|i|am|is|it|this|or|really|quite|though|about|that|of|still|for|sure|also)\b"
    r"[^\w]*)*(?:maybe|perhaps|possibly|unsure|uncertain|unclear|allegedly|supposedly|reportedly"
    r"|theoretically|hypothetically|arguably|in theory|so they say|with \w+ exceptions?"
    r"|(?:[1-4]?\d|50) ?percent"
    r"|(?:could|might|may) be (?:wrong|mistaken))\b"
    r"|[^\w]*(?:[1-4]?\d|50) ?%"
    r"|[^\w]*(?:but )?(?:it|this|that) (?:might|may|could) (?:also |well )?be (?:the |an? )?"
    + ITEM.pattern
)
"""A clause that doubts what the sentence said before: ``…, but I am not sure``."""

_ASCRIBED = re.compile(
    r"[^\w]*(?:so (?:is|are|was|does|do)"
    r"|(?:says|said|claims|claimed|writes|wrote|thinks|believes|argues))\b"
    rf"|[^\w]*{ONE}[^.]{{0,40}}\b(?:too|as well)\W*$"
)
"""A clause that adds another candidate, or a speaker: ``…, and so is C``, ``…, says Tom``."""

_REST_REJECTED = re.compile(
    r"\s(?:the|all)\s(?:the\s)?(?:rest|others?|remaining \w+)\s(?:is|are|was|were|can|could)\b"
    r"(?: \w+){0,3}? (?:wrong|incorrect|false|excluded|eliminated|ruled out)\b"
)
"""``B and the rest are wrong``, without a comma, may reject B, too."""

_QUALIFYING = frozenset({"except", "except for", "apart from", "aside from"})
"""Words after a claim that limit it: ``B is right except for its color``."""

_INTERRUPTED = re.compile(r"\b(?:not|never)\s?$")
"""The end of a clause before a parenthesis: ``It is not, in fact, true``."""


class _Claim(NamedTuple):
    """Holds the candidates that a clause asserts or denies.

    A claim without labels discards all earlier claims.
    """

    labels: Labels
    denied: bool = False
    level: Level = Level.WITHIN  # how strongly they are asserted
    retracts: bool = False  # without labels: the text claims nothing if no claim follows


_NONE = _Claim((UNKNOWN,), level=Level.DECLARED)
"""A declaration of something that is no candidate."""


def claimed_label(text: str, phrases: ClaimPhrases) -> int | None:
    """Return the index of the candidate that a text with mentions claims, or None.

    None means that the text claims no candidate, several ones, or one that does not exist.
    """
    claims = list(_claims(text, phrases))
    ends = [place for place, claim in enumerate(claims) if not claim.labels]
    for start in (*reversed(ends), -1):
        if any(_is_assertion(claim) for claim in claims[start + 1 :]):
            label = _decided(claims[start + 1 :], phrases)
            return None if label == UNKNOWN else label
        if start >= 0 and claims[start].retracts:
            return None
    return None


def claimed_list(text: str, phrases: ClaimPhrases) -> Labels:
    """Return the indices of the candidates that a text claims together, sorted; empty if unclear.

    Candidates belong together if "and", a comma or a similar mark connects them, not "or".
    """
    asserted = [claim for claim in _claims(text, phrases) if _is_assertion(claim)]
    level = max((claim.level for claim in asserted), default=Level.WITHIN)
    strongest = [claim.labels for claim in asserted if claim.level == level]
    if level == Level.DECLARED:
        strongest = strongest[-1:]
    labels = {label for each in strongest for label in each}
    return () if UNKNOWN in labels else tuple(sorted(labels))


def _decided(claims: Sequence[_Claim], phrases: ClaimPhrases) -> int | None:
    """Return the one candidate of the strongest assertions, if nothing after them denies it."""
    asserted = [place for place, claim in enumerate(claims) if _is_assertion(claim)]
    level = max(claims[place].level for place in asserted)
    strongest = [place for place in asserted if claims[place].level == level]
    if phrases.last_counts and level == Level.DECLARED:
        strongest = strongest[-1:]
    elif phrases.last_counts and len(claims[strongest[-1]].labels) == 1:
        # A list of all options, or "A or B", comes before the choice.
        lists = [number for number, place in enumerate(strongest) if len(claims[place].labels) > 1]
        strongest = strongest[max(lists, default=-1) + 1 :]
    labels = {label for place in strongest for label in claims[place].labels}
    if len(labels) != 1:
        return None
    (label,) = labels
    after = claims[strongest[-1] :]
    return None if any(claim.denied and label in claim.labels for claim in after) else label


def _is_assertion(claim: _Claim) -> bool:
    return bool(claim.labels) and not claim.denied


def _claims(text: str, phrases: ClaimPhrases) -> Iterator[_Claim]:
    """Yield the claims of a text in their order."""
    plain = simplified(_BLANKS.sub(" ", text).casefold())
    plain, lists = with_lists(_HEADING.sub(r"\1\2 ", plain))
    parts = _SENTENCE.split(plain)
    for sentence, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        yield from _Sentence(sentence, phrases, lists, asked="?" in end or "？" in end).claims()


class _Sentence:
    """Reads the clauses of a sentence one after the other."""

    def __init__(
        self, text: str, phrases: ClaimPhrases, lists: Sequence[Labels], *, asked: bool
    ) -> None:
        self._phrases = phrases
        self._lists = lists
        self._asked = asked
        self._parts = _CLAUSE.split(text)
        self._conditions = _conditions(self._parts)
        self._said: list[_Claim] = []
        self._open = self._is_subordinate = False
        self._interrupted = ""
        self._named: Labels = ()

    def claims(self) -> list[_Claim]:
        """Return the claims."""
        words = ["", *(word.strip() for word in self._parts[1::2])]
        clauses = zip(words, self._parts[::2], self._conditions, strict=True)
        for word, clause, condition in clauses:
            self._connect(word)
            whole = self._completed(word, self._corrected(word, clause))
            if whole is not None:
                self._read(word, whole, condition=condition)
        return self._said

    def _connect(self, word: str) -> None:
        """Record that a word begins a main or a subordinate clause, or ends one."""
        if word in _MAIN:
            self._open = self._is_subordinate = False
        elif word in _SUBORDINATE:
            self._is_subordinate = True
        elif word == "," and self._parts[0].strip() == "":
            self._is_subordinate = False  # the sentence began with a subordinate clause

    def _corrected(self, word: str, clause: str) -> str:
        """Record a correction at the beginning of a clause, and return the clause without it."""
        found = _CORRECTION.match(clause)
        if found:
            # "No:" may begin a list of objections. It discards no verdict, but contradicts it.
            if self._phrases.last_counts or not found[0].rstrip().endswith("no:"):
                self._said.append(_Claim((), retracts=found["retracts"] is not None))
            self._open = self._is_subordinate = False
            return clause[found.end() :]
        rejecting = _DISMISSAL.match(clause) or (word in _MAIN and _CONTRADICTION.match(clause))
        dismissed = self._named and rejecting
        if _RETRACTION.match(clause) or (dismissed and self._phrases.complements):
            self._said.append(_Claim((), retracts=True))
        elif dismissed:
            self._said.append(_Claim(self._named, denied=True))
        return clause

    def _completed(self, word: str, clause: str) -> str | None:
        """Return a clause with its beginning before a parenthesis; None within a parenthesis."""
        if self._interrupted and word == ",":
            item = ITEM.search(clause)
            if item is None:
                return None
            clause = self._interrupted + clause if clause[: item.start()].isspace() else clause
        ends_early = _INTERRUPTED.search(clause) and not ITEM.search(clause)
        self._interrupted = clause if ends_early else ""
        return clause

    def _read(self, word: str, clause: str, *, condition: bool) -> None:
        if word in _CONTRAST:
            # "all except C are wrong" asserts C
            rests = ITEM.split(clause)[1:]
            exempt = word in _EXCEPTION and len(rests) == 1 and is_rejected(rests[0])
            self._said += [
                _Claim(labels, denied=not exempt, level=Level.DECLARED)
                for labels in labels_in(clause, self._lists)
            ]
            if word in _QUALIFYING and not ITEM.search(clause):
                self._withdraw()
            return
        opens = is_open(clause, self._phrases)
        self._open = self._open or opens
        claims = self._stances(clause)
        if self._asked or self._open or condition:
            claims = [claim for claim in claims if claim == _NONE and not self._asked]
        if word == "and" and not self._named:  # "a cat, a dog and B" is a list of other things
            claims = [claim for claim in claims if claim.level == Level.DECLARED or claim.denied]
        self._said += [claim for claim in claims if claim.denied or not self._is_subordinate]
        joined = (
            word == "and"
            and _REST_REJECTED.match(clause) is not None
            and all(claim.level == Level.BARE for claim in self._said)
        )
        if joined or _DOUBT.match(clause) or _ASCRIBED.match(clause):
            self._withdraw()
        named = [*labels_in(clause, self._lists)]
        if named:
            self._named = named[-1]
            self._open = self._open and not opens  # a doubt concerns the candidate of its clause

    def _withdraw(self) -> None:
        """Discard the assertions of the sentence so far; denials remain."""
        self._said = [claim for claim in self._said if not _is_assertion(claim)]

    def _stances(self, clause: str) -> list[_Claim]:
        """Return the claims of a clause, in the order of its mentions."""
        items = list(ITEM.finditer(clause))
        if not items:
            value = self._phrases.valued.search(clause)
            return [_NONE] if value and not are_empty(clause[value.end() :]) else []
        if len(items) > _MOST_ITEMS:
            return []
        claims = []
        for item, labels in zip(items, labels_in(clause, self._lists), strict=True):
            before, after = clause[: item.start()], clause[item.end() :]
            taken = stance(
                before,
                after,
                self._phrases,
                firm=is_firm(item[0]),
                alone=len(items) == 1,
            )
            if taken is not None:
                claims.append(self._claim(labels, *taken))
        return claims

    def _claim(self, labels: Labels, denied: bool, level: Level) -> _Claim:
        if denied and self._phrases.complements and labels in ((0,), (1,)):
            return _Claim((1 - labels[0],), level=level)
        return _Claim(labels, denied=denied, level=level)


def _conditions(parts: Sequence[str]) -> list[bool]:
    """Return whether each clause depends on a condition, which ends at the next "so" or "but"."""
    if sum(_WHEN.match(part) is not None for part in parts[::2]) > 1:
        return [True] * len(parts[::2])
    conditions: list[bool] = []
    begin = 0
    for place in range(0, len(parts), 2):
        if place + 1 == len(parts) or parts[place + 1].strip() in _MAIN:
            clauses = parts[begin : place + 1]
            found = any(_CONDITION.search(each) for each in clauses)
            conditions += [found] * ((len(clauses) + 1) // 2)
            begin = place + 2
    return conditions
