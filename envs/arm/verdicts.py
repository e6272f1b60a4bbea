"""Writes and parses the verdicts of a judge.

One response is judged True or False; of several, the best one is named by its number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from visenv.grammar.tool_call import Compat

HEAD = "Overall Judgment:"

_NOT = r"((?:\bnot|\bnever|n't)\s{1,4}(?:(?:entirely|quite|really|fully|completely)\s{1,4})?)?"
_STATED = rf"{_NOT}\b(true|false)\b(?:\s{{0,4}}[(/]?\s{{0,4}}(?:or\s{{1,4}})?(true|false)\b)?"
"""Groups: a negation, the truth value, and another value that makes the verdict ambiguous."""

_HEADED_TRUTH = re.compile(rf"overall judge?ment\s*+:\s*+\**+\s*+{_STATED}", re.IGNORECASE)
_TRUTH = re.compile(_STATED, re.IGNORECASE)
_NAME = r"(?:(?:answer|response)\s{1,4}|resp_)"
_PREFERENCE = re.compile(
    rf"(?<!\w){_NAME}(\d{{1,2}})\s+is\s+(?:the\s+)?"
    r"(?:(?:slightly|somewhat|marginally|much|far|clearly|definitely|significantly|considerably"
    r"|substantially)\s+)?(?:better|best|preferred|correct)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    rf"(?:{_NAME}\d{{1,2}}\s{{0,4}}(?:/|&|and|or)"
    r"|\b(?:false|untrue|wrong|incorrect|not true|not the case|deny|doubt)(?:\s{1,4}that)?"
    r"|\b(?:if|whether|neither|nor))\s{0,4}$",
    re.IGNORECASE,
)
"""Words before a preference that negate it or make it ambiguous."""

_BEFORE = 60
"""Number of characters before a preference that are searched for `_UNSURE`."""

_NUMBER = re.compile(
    r"(?:overall judge?ment\s*:\s*)?"
    rf"(?:\$?\\boxed\{{{_NAME}?(\d{{1,2}})\}}\$?|{_NAME}?(\d{{1,2}}))\.?",
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
    if candidates == 1:
        verdicts = _truths(answer)
    else:
        whole = _NUMBER.fullmatch(answer.strip())
        numbers = {int(whole[1] or whole[2])} if whole else _preferred(answer)
        verdicts = {str(number) for number in numbers}
        verdicts = verdicts if verdicts <= set(map(str, range(1, candidates + 1))) else set()
    return verdicts.pop() if len(verdicts) == 1 else None


def _truths(answer: str) -> set[str]:
    """Return the truth values in an answer; if there is the heading, only those after it count."""
    found: set[str] = set()
    for negation, stated, other in _HEADED_TRUTH.findall(answer) or _TRUTH.findall(answer):
        is_true = (stated.lower() == "true") != bool(negation)
        found.add(str(is_true))
        if other:
            found.add(other.capitalize())
    return found


def _preferred(answer: str) -> set[int]:
    """Return the numbers of the responses that an answer prefers; empty if one is negated."""
    numbers: set[int] = set()
    for found in _PREFERENCE.finditer(answer):
        if _UNSURE.search(answer[max(0, found.start() - _BEFORE) : found.start()]):
            return set()
        numbers.add(int(found[1]))
    return numbers


def _read_as_arm(answer: str) -> str:
    preferences = _ARM_PREFERENCE.findall(answer)
    if preferences:
        return str(preferences[-1])
    text = answer.strip().lower().removeprefix(HEAD.lower()).strip()
    return text.capitalize()
