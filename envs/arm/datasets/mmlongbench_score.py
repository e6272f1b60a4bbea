"""Computes the score of an answer in MMLongBench-Doc (Ma et al., arXiv 2407.01523), by its format.

=========  =====================================================================================
format     score
=========  =====================================================================================
``Int``    1 if equal after the answer is truncated to a whole number
``Float``  1 if within 1 % of the reference, its hundredth or its hundredfold (percentages)
``Str``    1 if equal, for references that look like a link, a file, a page, a number, a time or
``None``   an address; otherwise the edit similarity, 0 if it is at most 0.5
``List``   0 if the lengths differ; otherwise both are sorted, and the score is 1 if equal, for
           first items that are numbers or look as above, else the lowest similarity of two items
=========  =====================================================================================

The score follows the benchmark's own script, whose similarities are soft (its accuracy sums them),
except for cases in which the script fails: an answer that looks like a list but is none is one
item, the policy's text is never evaluated as code, and an unreadable reference number scores 0.
"""

from __future__ import annotations

import math
import re
from typing import Any

from visenv.data.json_rows import written_list
from visenv.errors import DataError
from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import composed

from .anls import similarity_above

FORMATS = ("Int", "Float", "Str", "List", "None")
NOT_ANSWERABLE = "Not answerable"

_BRACKETED = re.compile(r"\s*+\([^)]*+\)")
_QUOTES = re.compile(r"^['\"]|['\"]$")
_EXACT = (
    re.compile(r"\d+(?:[-\s]\d+)?"),
    re.compile(r"\d{4}[-\s]\d{2}(?:[-\s]\d{2})?"),
    re.compile(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}"),
)


def mmlongbench_score(answer: str, reference: str, form: str) -> float:
    """Return the score of `answer`, 0 to 1.

    An answer longer than `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Args:
        answer: The answer of the policy.
        reference: The right answer; a list is written as in Python.
        form: One of `FORMATS`.

    Raises:
        DataError: If there is no such format.
    """
    if form not in FORMATS:
        raise DataError(f"The answer format must be one of {', '.join(FORMATS)}, got {form!r}.")
    if is_too_long(answer):
        return 0.0
    if form == "Int":
        return _integers(answer, reference)
    if form == "Float":
        return float(_floats(answer, reference))
    if form == "List":
        return _lists(_items(answer), _items(reference))
    return _texts(_clean(answer), _clean(reference))


def _integers(answer: str, reference: str) -> float:
    try:
        return float(int(reference) == int(float(answer)))
    except (ValueError, OverflowError):
        return 0.0


def _floats(answer: str, reference: str) -> bool:
    try:
        given, wanted = float(_clean(answer)), float(_clean(reference))
    except ValueError:
        return False
    return any(_close(given, each) for each in (wanted / 100, wanted, wanted * 100))


def _close(given: float, wanted: float) -> bool:
    if not math.isfinite(given):
        return False
    digits = max(min(_decimals(given), _decimals(wanted)), 2)
    return math.isclose(given, wanted, rel_tol=0.01) or round(given, digits) == round(
        wanted, digits
    )


def _decimals(value: float) -> int:
    _, point, digits = str(value).partition(".")
    return len(digits) if point else 3


def _lists(given: list[Any], wanted: list[Any]) -> float:
    if len(given) != len(wanted):
        return 0.0
    ours, theirs = (sorted(_clean(str(each)) for each in items) for items in (given, wanted))
    if not theirs:
        return 1.0
    if _is_number(theirs[0]) or _is_exact(theirs[0]):
        return float(ours == theirs)
    return min(similarity_above(one, other) for one, other in zip(ours, theirs, strict=True))


def _texts(given: str, wanted: str) -> float:
    return float(given == wanted) if _is_exact(wanted) else similarity_above(given, wanted)


def _items(text: str) -> list[Any]:
    if text.startswith("["):
        try:
            return written_list(text)
        except DataError:
            pass
    return [text]


def _clean(text: str) -> str:
    """Return the text in lower case, without brackets and their content, quotes, ``$`` or ``%``."""
    text = _BRACKETED.sub("", composed(text).lower().strip()).strip()
    text = _QUOTES.sub("", text).strip()
    return text.lstrip("$").strip().rstrip("%").strip()


def _is_exact(text: str) -> bool:
    """Return whether an answer must match exactly, as a link, a page, a time or a date."""
    return (
        "https://" in text
        or text.endswith((".py", "ipynb"))
        or text.startswith("page")
        or "a.m." in text
        or "p.m." in text
        or any(pattern.fullmatch(text) for pattern in _EXACT)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
