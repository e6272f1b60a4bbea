"""The verdicts of a judge: how they are written, and how they are read.

One response is judged True or False; of several the best one is named by its number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from visenv.grammar.tool_call import Compat

HEAD = "Overall Judgment:"

_HEADED_TRUTH = re.compile(r"overall judge?ment\s*+:\s*+\**+\s*+(true|false)\b", re.IGNORECASE)
_TRUTH = re.compile(r"\b(true|false)\b", re.IGNORECASE)
_PREFERENCE = re.compile(
    r"\b(?:answer|response)\s+(\d{1,2})\s+is\s+(?:the\s+)?(?:slightly\s+|much\s+|clearly\s+)?"
    r"(?:better|best|preferred|correct)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?:overall judge?ment\s*:\s*)?(?:(?:answer|response)\s+)?(\d{1,2})\.?", re.IGNORECASE
)
_ARM_PREFERENCE = re.compile(
    r"answer\s*([12])\s*is\s*(?:the\s*)?(?:slightly\s*)?(?:better|preferred|correct)",
    re.IGNORECASE,
)


def verdicts(candidates: int) -> list[str]:
    """Every verdict that can be given of so many responses."""
    return ["True", "False"] if candidates == 1 else [str(n + 1) for n in range(candidates)]


def write_verdict(verdict: str) -> str:
    """The answer that gives a verdict, ``"True"``, ``"False"`` or a number, in the asked form."""
    if verdict in ("True", "False"):
        return f"{HEAD} {verdict}"
    return f"{HEAD} Answer {verdict} is better"


def write_rating(rating: int) -> str:
    """The answer that gives a rating, in the asked form."""
    return f"{HEAD} {rating}"


def verdict_of_rating(rating: int, scale: Sequence[int]) -> str | None:
    """What a rating says of a response: ``"True"`` from the middle of the scale, or ``"False"``.

    Args:
        rating: A number on the scale; another is no verdict.
        scale: The lowest and the highest rating.
    """
    low, high = scale
    if not low <= rating <= high:
        return None
    return str(2 * rating >= low + high)


def read_verdict(answer: str, candidates: int, compat: Compat = None) -> str | None:
    """The verdict of an answer, or None when it gives none or contradicts itself.

    Args:
        answer: What stands in ``<answer>``.
        candidates: How many responses were judged.
        compat: ``"arm"`` reads as the public reward does: the last of several preferences counts,
            only answers 1 and 2 can be preferred, and a text that is no preference is taken as it
            stands.

    Returns:
        ``"True"``, ``"False"``, or a number from 1 to `candidates`.
    """
    if compat == "arm":
        return _read_as_arm(answer)
    if candidates == 1:
        found = _HEADED_TRUTH.findall(answer) or _TRUTH.findall(answer)
        verdicts = {each.capitalize() for each in found}
    else:
        whole = _NUMBER.fullmatch(answer.strip())
        found = [whole[1]] if whole else _PREFERENCE.findall(answer)
        verdicts = {str(int(each)) for each in found}
        verdicts = verdicts if verdicts <= set(map(str, range(1, candidates + 1))) else set()
    return verdicts.pop() if len(verdicts) == 1 else None


def _read_as_arm(answer: str) -> str:
    preferences = _ARM_PREFERENCE.findall(answer)
    if preferences:
        return str(preferences[-1])
    text = answer.strip().lower().removeprefix(HEAD.lower()).strip()
    return text.capitalize()
