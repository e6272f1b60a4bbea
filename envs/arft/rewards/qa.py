"""Computes exact match and token F1, the scores of short answers (as in SQuAD).

Both compare texts after the normalization of SQuAD's script (Rajpurkar et al., 2016): lower case,
no punctuation, no articles, single blanks. Visual-ARFT (arXiv 2505.14246) uses F1 as reward and
reports both. Chinese is written without blanks and is compared character by character. Texts are
compared in NFC. A text that is empty after normalization ("the") is compared as it is, and a blank
one equals nothing; SQuAD's script, which has unanswerable questions, would pay "the" for "a".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from visenv.errors import DataError, UnknownNameError
from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import composed

Compat = Literal["arft"] | None

_FULL_WIDTH = "".join(chr(ord(character) + 0xFEE0) for character in string.punctuation)
_CHINESE_PUNCTUATION = "。｡、“”‘’【】《》"
_DELETED = str.maketrans("", "", string.punctuation + _FULL_WIDTH + _CHINESE_PUNCTUATION)
_ASCII_DELETED = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset({"a", "an", "the"})
_CHINESE = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IS_CHINESE = re.compile(f"[{_CHINESE}]")
_TOKEN = re.compile(rf"[{_CHINESE}]|[^\s{_CHINESE}]+")


def normalized(text: str) -> str:
    """Return the normalized form of an answer, which is compared."""
    words = composed(text).lower().translate(_DELETED).split()
    return " ".join(word for word in words if word not in _ARTICLES)


def _compared(text: str) -> list[str]:
    """Return the tokens of a text; those before normalization if none is left."""
    return tokens(text) or composed(text).casefold().split()


def tokens(text: str) -> list[str]:
    """Return the words of a text after normalization, or the characters of a Chinese text."""
    return _TOKEN.findall(normalized(text))


def exact_match(answer: str, references: Sequence[str], compat: Compat = None) -> float:
    """Return 1 if the answer has the same `tokens` as a reference, otherwise 0.

    An answer longer than `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Args:
        answer: The answer of the policy.
        references: The accepted answers.
        compat: ``"arft"`` compares as the public code does, which keeps typographic punctuation
            (such as curly quotes) if neither text is Chinese.

    Raises:
        DataError: If there is no reference.
    """
    _require(references)
    if is_too_long(answer):
        return 0.0
    if compat:
        return float(any(_published_form(answer) == _published_form(text) for text in references))
    given = _compared(answer)
    return float(given != [] and any(given == _compared(each) for each in references))


def token_f1(answer: str, references: Sequence[str], compat: Compat = None) -> float:
    """Return the best harmonic mean of precision and recall of the answer's tokens, 0 to 1.

    Equal texts that are not blank give 1. An answer longer than
    `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Args:
        answer: The answer of the policy.
        references: The accepted answers; the best score counts.
        compat: ``"arft"`` counts as the public code does: a token in both texts counts as one
            common token even if it is repeated, while precision and recall divide by all tokens.
            An answer equal to "new york new york" then scores 0.5. If either text is Chinese,
            both are split into characters.

    Raises:
        DataError: If there is no reference.
        UnknownNameError: If there is no such `compat`.
    """
    if compat not in (None, "arft"):
        raise UnknownNameError("compat mode", str(compat), ["arft"])
    _require(references)
    if is_too_long(answer):
        return 0.0
    score = _published_f1 if compat else _f1
    return max(score(answer, reference) for reference in references)


def _f1(answer: str, reference: str) -> float:
    given, wanted = _compared(answer), _compared(reference)
    if not given or not wanted:
        return 0.0
    common = (Counter(given) & Counter(wanted)).total()
    return 2 * common / (len(given) + len(wanted))


def _published_f1(answer: str, reference: str) -> float:
    texts = [_published_form(text) for text in (answer, reference)]
    chinese = any(_IS_CHINESE.search(text) for text in texts)
    given, wanted = (list(text) if chinese else text.split() for text in texts)
    common = len(set(given) & set(wanted))
    return 2 * common / (len(given) + len(wanted)) if common else 0.0


def _published_form(text: str) -> str:
    """Normalize as the public evaluation does; Chinese loses its blanks but keeps articles.

    For other texts, only ASCII punctuation is deleted.
    """
    if _IS_CHINESE.search(text):
        return text.lower().translate(_DELETED).replace(" ", "")
    words = text.lower().translate(_ASCII_DELETED).split()
    return " ".join(word for word in words if word not in _ARTICLES)


def _require(references: Sequence[str]) -> None:
    if not references:
        raise DataError("An answer is scored against reference answers, and the sample has none.")
