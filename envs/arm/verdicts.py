"""Writes and parses the verdicts of a judge.

One response is judged True or False; of several, the best one is named by its number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from visenv.grammar.tool_call import Compat
from visenv.text.claims import claimed_label
from visenv.text.mentions import ITEM, ONE, SPACE, mention
from visenv.text.normalize import without_markup
from visenv.text.replies import stated
from visenv.text.stance import ClaimPhrases
from visenv.text.words import CJK

HEAD = "Overall Judgment:"

_HEADING = re.compile(r"\boverall judge?ment\b", re.IGNORECASE)
_HEADING_MARKS = re.compile(rf"\A{_HEADING.pattern}[\s:|*#-]*", re.IGNORECASE)
_FALSE_ONE = mention(1, "text")
_CROSSED = re.compile(r"\bfalse\b[\s*_.:-]*[❌✗✘❎]|[❌✗✘❎][\s*_:-]*\bfalse\b", re.IGNORECASE)
"""A cross that illustrates "false" does not deny it."""

_FALSE_THAT, _TRUE_THAT = (
    re.compile(rf"\bit{words} that\b(?=[^.,;\n]*\b(?:true|false)\b)", re.IGNORECASE)
    for words in ("(?:(?:'s| is) (?:false|not true)| isn't true)", "(?:'s| is) true")
)
"""A truth value of a sentence that contains the verdict: ``It is false that it is true``."""

_TRUTH = re.compile(rf"(?<![^\W{CJK}])(?<!-)(?:(true)|false)(?![^\W{CJK}])(?!-)", re.IGNORECASE)
_TRUTH_PHRASES = ClaimPhrases(
    declaring=re.compile(r"\b(?:judge?ment|verdict|conclusion|decision|final answer)\b"),
    affirming=re.compile(r"(?!)"),
    valued=re.compile(r"\b(?:judge?ment|verdict)\s?(?:is|:|-)\s?"),
    opening=re.compile(
        r"\b(?:should|ought|needs?|want|let us|tell me|torn|friend|only)\b"
        rf"|\b(?:more|less) {ONE}"
        rf"|\b(?:not|never) (?:say|call|claim|state|confirm) (?:\w+ ){{0,3}}{_FALSE_ONE}"
        r"|\b(?:hard|easy|difficult|simple|tempting) to (?:call|consider|judge|rate)\b"
        rf"|\b(?:not|never) (?:say|state|confirm) {ONE}"
        r"|\bnot (?:completely|entirely|quite|exactly|wholly|totally|fully|altogether)"
        rf" {_FALSE_ONE}"
        # A part of the response, not the response.
        r"|\b(?:first|second|third|last|next|other) (?:\w+ )?"
        r"(?:line|sentence|half|part|paragraph|clause|word|item|point|section|step|claim|statement|premise)s?\b"
        r"|\b(?:some|most|much|many|few|part|parts|half|one|two|three|a lot) of\b"
        # "true in summer", but not "true in every respect"
        rf"|{ONE}\s(?:provided|before|yesterday|once|for the|on"
        r"|in (?!it|this|that|every|all|fact|both|any|each))"
    ),
    # "The claim about line two is true", but not "true love" or "the true story".
    within=re.compile(
        r"\b(?:is|are|was|were|be|seems|looks|holds|rings|proves|proved|it|this|that|them|judged?)\b"
    ),
    complements=True,
    last_counts=False,
)
_SEVERAL = re.compile(
    r"\b(?:answers|responses|replies|candidates|assistants|models|outputs)\s?\d{1,2}"
    r"(?:\s?(?:,\s?(?:and|or)|,|and|or|&|/)\s?\d{1,2})+\b",
    re.IGNORECASE,
)
"""A noun with several numbers: ``Answers 1 and 2``."""

_LATER_NUMBER = re.compile(r"(?<=[\s,&/])(\d{1,2})\b(?<!s\s\d)(?<!s\s\d\d)")
"""A number of `_SEVERAL` after the first one."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_NUMBERS = {
    word: number for words in (_CARDINALS, _ORDINALS) for number, word in enumerate(words, start=1)
}
_NOUN = r"(?:answers?|responses?|repl(?:y|ies)|candidates?|assistants?|models?|outputs?)"
_NUMBER = rf"(\d{{1,2}}|{'|'.join(_CARDINALS)})(?!\.?\w)"
_NAME = re.compile(
    rf"\b{_NOUN}(?:-|[\s_#(\[\"'.:]{{0,3}}(?:no\.?\s|number\s)?){_NUMBER}[)\]\"']?"
    rf"|\bresp[\s_]{_NUMBER}"
    rf"|\b({'|'.join(_ORDINALS)}|\d(?=st|nd|rd|th))(?:st|nd|rd|th)?\s(?:{_NOUN}|one)\b"
    rf"|(?:#|\bno\.\s|\bnumber\s){_NUMBER}"
    rf"|\b({'|'.join(_ORDINALS)})(?=\s(?:is|wins)\b)",
    re.IGNORECASE,
)
"""The name of a response: ``Answer 1``, ``the second response``, ``#2``."""

_DIGIT = re.compile(
    r"(\A\W*(?=\d+\s(?:is|wins)\b)|\b(?:better|preferable|superior)\s(?:than|to)\s|\b(?:answer|response|one)\s?(?:is|:|=)\s?"
    r"|\b(?:judge?ment|verdict|winner|choice|preferred|better|best|prefer|choose|pick|select"
    r"|vote for|go with)\s?(?:is|:|-|=|#)*\s)"
    r"(\d{1,2})(?![\w%]|\.\d|\s(?:of|out)\b|\s?(?:or|and|[,/&])\s?\d)",
    re.IGNORECASE,
)
"""A number that can only be that of a response."""

_REST = (
    rf"(?:{SPACE}(?:{ITEM.pattern}|\b(?:the|a|an|one|ones|of|all|two|both|three|four|these|those|them"
    rf"|{_NOUN}|choice|option|version|solution|overall|by far|than|over|to|or|and|other|others|rest"
    r"|alternative|it|in (?:all|every|both|most|general|my)|respects?|ways?|aspects?|cases?"
    r"|opinion|indeed|too|without|doubt|certainly|is better"
    r"|(?:more |most )?(?:accurate|helpful|correct|complete))\b))*"
)
"""Words that may follow a preference. Others limit it: ``better formatted``, ``better at it``."""

_PREFERENCE_PHRASES = ClaimPhrases(
    declaring=re.compile(
        r"\b(?:judge?ment|verdict|winner|better|best|prefer|preferred|preferable|choose|choice|pick"
        r"|select|vote for|(?:go|going) with|in favor of|conclusion|preference"
        r"|(?:correct|right|superior) (?:answer|response|one)|(?:vote|point|win) goes to)\b"
    ),
    affirming=re.compile(
        rf"^{SPACE}(?:(?:is|are|that is|seems|appears|looks|be|to be|the|a|an|by far|far|slightly"
        r"|strictly|noticeably|undoubtedly|marginally|much|clearly|definitely|significantly"
        r"|considerably|substantially|overall|certainly|obviously|probably|(?:most )?likely|also"
        r"|still|even|answer|response|clear|indeed|simply|just|really|generally|surely|truly|must"
        r"|like|only(?= (?:correct|right)\b)|a bit|a little|a lot|way)\s)*"
        r"(?:better|best|preferred|preferable|should be (?:preferred|chosen)|superior|correct|right"
        r"|winner|wins|more (?:accurate|helpful|correct|complete)"
        r"|most (?:accurate|helpful|correct|complete))\b"
        rf"(?={_REST}(?:{SPACE}$|\s?:))"
        rf"|^{SPACE}(?:gets my vote|(?:is|remains|would be) my (?:choice|pick|preference)"
        r"|is the one i (?:would )?(?:prefer|choose|pick)|should win|deserves (?:the win|to win)"
        r"|comes out (?:ahead|on top)|is ahead)"
        rf"(?={SPACE}$)"
        rf"|^{SPACE}it is{SPACE}$"
        rf"|^{SPACE}was (?:the )?(?:better|best)(?: one| answer| response)?{SPACE}$"
    ),
    valued=re.compile(r"\b(?:judge?ment|verdict|winner|better|preferred)\s?[:-]\s?"),
    last_counts=False,
    bare=False,
)
_OVER = re.compile(
    rf"{_NOUN}\s(\d{{1,2}}),?\s(?:over|rather than|instead of|and not|not)\s{_NOUN}\s\d{{1,2}}"
    r"[.!]?",
    re.IGNORECASE,
)
"""A preference without a verb: ``Answer 1 rather than Answer 2``."""

_RANKED = re.compile(rf"({ONE})\s?>{{1,3}}\s?(?={ONE}\s?(?:[.,;>\n]|\Z))")
"""A ranking: ``Answer 2 > Answer 1``."""

_REASONED = re.compile(
    rf"{_NOUN}\s\d{{1,2}},?\s(?:because(?! of)|since|as|clearly|definitely|obviously)\b",
    re.IGNORECASE,
)
"""The beginning of a preference without a verb: ``Answer 1, because``."""

_NUMBER_ALONE = re.compile(
    rf"(?:(?:so|thus|hence|therefore|overall)\b[,:]?\s)?[\"'(\[#*]*(?:{_NOUN}\s?[#(\[]?|resp_|no\.\s)?(\d{{1,2}})[\"')\]*]*[.!]?",
    re.IGNORECASE,
)
_ARM_PREFERENCE = re.compile(
    r"answer\s*([12])\s*is\s*(?:the\s*)?(?:slightly\s*)?(?:better|preferred|correct)",
    re.IGNORECASE,
)


def verdicts(candidates: int) -> list[str]:
    """Return all possible verdicts for this number of responses."""
    return ["True", "False"] if candidates == 1 else [str(n + 1) for n in range(candidates)]


def write_verdict(verdict: str) -> str:
    """Return the answer text for a verdict, ``"True"``, ``"False"`` or a number."""
    if verdict in ("True", "False"):
        return f"{HEAD} {verdict}"
    return f"{HEAD} Answer {verdict} is better"


def write_rating(rating: int) -> str:
    """Return the answer text for a rating."""
    return f"{HEAD} {rating}"


def verdict_of_rating(rating: int, scale: Sequence[int]) -> str | None:
    """Return the verdict of a rating: ``"True"`` from the middle of the scale on.

    Args:
        rating: A number on the scale; other numbers give None.
        scale: The lowest and the highest rating.
    """
    low, high = scale
    if not low <= rating <= high:
        return None
    return str(2 * rating >= low + high)


def read_verdict(answer: str, candidates: int, compat: Compat = None) -> str | None:
    """Return the verdict of an answer, or None if it has no verdict, several or an ambiguous one.

    A negated truth value counts as the opposite: "not true" is parsed as False.

    Args:
        answer: The text in ``<answer>``.
        candidates: Number of judged responses.
        compat: ``"arm"`` parses as the public reward does: the last of several preferences counts,
            only answers 1 and 2 can be preferred, and a text without a preference is returned
            unchanged.

    Returns:
        ``"True"``, ``"False"``, or a number from 1 to `candidates`.
    """
    if compat == "arm":
        return _read_as_arm(answer)
    said = stated(answer)
    text = without_markup(said.text)
    starts = [found.start() for found in _HEADING.finditer(text)] or [0]
    parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    read = _truth if candidates == 1 else _preferred
    values = {read(part, candidates, said.contained) for part in parts}
    return values.pop() if len(values) == 1 else None


def _truth(text: str, candidates: int, contained: bool) -> str | None:
    """Return the truth value that a text states."""
    plain = _TRUE_THAT.sub("", _FALSE_THAT.sub("it is not the case that", text))
    plain = _CROSSED.sub("False", plain)
    marked = _TRUTH.sub(lambda found: mention(0 if found[1] else 1, "text"), plain)
    label = claimed_label(marked, _TRUTH_PHRASES)
    return None if label is None else ("True", "False")[label]


def _preferred(text: str, candidates: int, contained: bool) -> str | None:
    """Return the number of the response that a text prefers."""

    def label(found: re.Match[str]) -> str:
        written = next(group for group in found.groups() if group).lower()
        number = _NUMBERS.get(written) or int(written)
        return mention(number - 1 if 1 <= number <= candidates else None)

    bare = _HEADING_MARKS.sub("", text).strip()
    alone = _NUMBER_ALONE.fullmatch(bare) or _OVER.fullmatch(bare)
    if alone:
        return str(int(alone[1])) if 1 <= int(alone[1]) <= candidates else None
    text = _SEVERAL.sub(lambda found: _LATER_NUMBER.sub(r"Answer \1", found[0]), text)
    marked = _NAME.sub(label, _DIGIT.sub(r"\1Answer \2", text))
    marked = _RANKED.sub(r"\1 is better than ", marked)
    reasoned = None if contained else _REASONED.match(bare)
    phrases = _PREFERENCE_PHRASES._replace(bare=contained or reasoned is not None)
    chosen = claimed_label(marked, phrases)
    preferred = None if chosen is None else str(chosen + 1)
    if reasoned:
        of_reason = _preferred(bare[reasoned.end() :], candidates, contained=False)
        if of_reason not in (None, preferred):
            return None  # the reason prefers another response
    return preferred


def _read_as_arm(answer: str) -> str:
    preferences = _ARM_PREFERENCE.findall(answer)
    if preferences:
        return str(preferences[-1])
    text = answer.strip().lower().removeprefix(HEAD.lower()).strip()
    return text.capitalize()
