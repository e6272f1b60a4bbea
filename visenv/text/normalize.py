r"""Normalizes texts for comparison: the only rules of visenv that are not those of a publication.

====================  ==========================================================================
function              what it makes equal
====================  ==========================================================================
`canonical`           composed and decomposed accents (NFC), full-width and mathematical letters,
                      quotation marks, dashes and minus signs, blanks, ligatures
`without_markup`      Markdown, LaTeX and HTML around a text: ``**B**``, ``\boxed{\text{B}}``
`comparable`          both, and letter case, runs of blanks and final punctuation
`comparison_tokens`   also punctuation inside; signs, decimal points, currency and operators stay
====================  ==========================================================================

A text that becomes empty equals no text (`same_text`, `same_answer`). Scores that follow a
published script have its normalization and say so: `visenv.rewards.vqa.normalize_answer`,
`visenv.envs.arft.rewards.qa.normalized`, `visenv.envs.arm.datasets.mmlongbench`. They apply
NFC first (`composed`), which no published text depends on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

_QUOTES = {"'": "‘’‚‛‹›ʼ′´", '"': "“”„‟«»″「」『』〝〞〟｢｣【】〖〗"}
_DASHES = "‐‑‒–—―−⁃﹘﹣"
_BLANKS = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\ufeff" + "".join(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_COMPATIBLE = (
    (0x24B6, 0x24EA),  # circled letters
    (0x2E80, 0x2FE0),  # radicals
    (0xFB00, 0xFB07),  # Latin ligatures
    (0xFE50, 0xFE6C),  # small forms
    (0xFF01, 0xFFA0),  # full-width forms and half-width katakana
    (0xFFE0, 0xFFE7),  # full-width currency
    (0x1D400, 0x1D800),  # mathematical letters and digits
)
"""Ranges of characters that only look different. Superscripts and fractions mean something."""

_LANGUAGE = re.compile(r"```[ \t]*[\w+-]{0,20}[ \t]*\n|```")
_HTML = re.compile(
    r"</?(?:b|i|u|em|strong|p|span|div|code|mark|sub|sup|center|h[1-6])(?: [^<>]*)?>"
)
_STRUCK = re.compile(r"~~[^~\n]*~~|<(s|del|strike)>[^<\n]*</\1>")
_LINE_START = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?(?![ \t]?\d)|[-*+•][ \t]+(?!\d))+", re.MULTILINE
)
_MATH = re.compile(r"\$\$([^$]+)\$\$|\$(?=\S)([^$\n]*(?<=\S))\$(?!\d)")
_WRAPPED = re.compile(
    r"\\(?:text|mathrm|mathbf|mathit|mathsf|mathtt|mathcal|textbf|textit|textrm|textsf|texttt|emph"
    r"|underline|boldsymbol|operatorname|boxed|fbox|mbox|bf|rm)\s?\{([^{}]*)\}"
)
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_DELIMITER = re.compile(r"\\[()\[\],;! ]|\\(?:left|right|quad|displaystyle)(?![a-z])")
_SYMBOLS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "lt": "<", "gt": ">", "ne": "≠", "neq": "≠",
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "pi": "π", "degree": "°", "infty": "∞",
}  # fmt: skip
_SYMBOL = re.compile(r"\\(" + "|".join(sorted(_SYMBOLS, key=len, reverse=True)) + r")(?![a-z]) ?")
_ESCAPED = re.compile(r"\\([%$#&_{}])")
_CODE = re.compile(r"`([^`\n]*)`")
_EMPHASIS = (
    re.compile(r"(?<!\d)\*{2,3}(?=\S)([^*\n]*)(?<=\S)\*{2,3}(?!\d)"),
    re.compile(r"(?<![A-Za-z0-9*])\*(?=\S)([^*\n]*)(?<=\S)\*(?![A-Za-z0-9*])"),
    re.compile(r"(?<!\w)_{1,3}(?=\S)([^_\n]*)(?<=\S)_{1,3}(?!\w)"),
)
_DEEPEST = 6
"""Nested LaTeX commands that are unwrapped."""

_FINAL_MARK = re.compile(r"\s?(?:[.,;:?…]|(?<=[^\W\d_])!)$")
"""One punctuation mark at the end; in ``5!``, it belongs to the number."""

_QUOTED = 3
"""Pairs of quotation marks around a text that are removed."""

_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_COMPARED = re.compile(
    r"(?<![\w)\].%])[-+]?(?:\d+(?:\.\d+)?!?|\.\d+)|\d+(?:\.\d+)?!?|[^\W\d_]+(?:'[^\W\d_]+)*|\S"
)
_IN_A_WORD = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_PUNCTUATION = frozenset("\"'.,;:!?…()[]{}")
ARTICLES = frozenset({"a", "an", "the"})
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split())}
"""Digits of small numbers in words."""


def canonical(text: str) -> str:
    """Return the text with one form for characters that mean the same (see the module)."""
    if text.isascii():
        return text
    table = _replacements()
    if not table.keys().isdisjoint(map(ord, set(text))):
        text = text.translate(table)
    return unicodedata.normalize("NFC", text)


def composed(text: str) -> str:
    """Return the text in NFC alone: the form in which published scores compare texts."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def without_markup(text: str) -> str:
    r"""Return the text without Markdown, LaTeX and HTML around its parts.

    Struck text is removed. A lone ``*`` or ``$`` stays (``2 * 3``, ``$5``). The time is linear.
    """
    for pattern, becomes in _MARKUP:
        text = pattern.sub(becomes, text)
    if "\\" in text:
        text = _without_latex(text)
    for pattern in (_CODE, *_EMPHASIS):
        text = pattern.sub(r"\1", text)
    return text


def comparable(text: str) -> str:
    """Return the text as it is compared: canonical, without markup, in one case and one line.

    Quotation marks around the whole text, and one punctuation mark at its end, are removed.
    """
    plain = " ".join(without_markup(canonical(text)).casefold().split())
    for _ in range(_QUOTED):
        plain = _FINAL_MARK.sub("", plain)
        if len(plain) < 3 or plain[0] + plain[-1] not in ('""', "''"):
            break
        plain = plain[1:-1].strip()
    return plain


def comparison_tokens(text: str, *, exact: bool = False) -> list[str]:
    """Return the words, numbers and signs of a text, for comparing it with another text.

    A minus sign belongs to its number, and a decimal point to its digits, so that ``-3``, ``3``,
    ``$1.50``, ``C++`` and ``x < 5`` differ from ``3``, ``.3``, ``$15.0``, ``C#`` and ``x > 5``.

    Args:
        text: The text.
        exact: Whether punctuation and the spelling of numbers (``3.0``, ``+3``) count, too.
    """
    plain = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), comparable(text))
    tokens = _COMPARED.findall(plain if exact else _IN_A_WORD.sub(" ", plain))
    if exact:
        return tokens
    return [_number(token) for token in tokens if token not in _PUNCTUATION]


def same_text(first: str, second: str) -> bool:
    """Return whether two texts are equal in the form of `comparable`, and not empty."""
    form = comparable(first)
    return form != "" and form == comparable(second)


def same_answer(first: str, second: str) -> bool:
    """Return whether two short answers are equal: as `comparison_tokens`, and not empty.

    Articles do not count, unless there is no other word, and "two" equals "2".
    """
    tokens = _answer_tokens(first)
    return tokens != [] and tokens == _answer_tokens(second)


def _answer_tokens(text: str) -> list[str]:
    tokens = [NUMBERS.get(token, token) for token in comparison_tokens(text)]
    return [token for token in tokens if token not in ARTICLES] or tokens


def _number(token: str) -> str:
    """Return a number without plus sign, leading zeros, and zeros after its decimal point."""
    digits = token.lstrip("+-")
    if not digits or not digits[-1].isdigit():
        return token
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    number = (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
    return f"-{number}" if token[0] == "-" and number != "0" else number


def _without_latex(text: str) -> str:
    for _ in range(_DEEPEST):
        inner = _FRACTION.sub(r"\1/\2", _WRAPPED.sub(r"\1", text))
        if inner == text:
            break
        text = inner
    text = _SYMBOL.sub(lambda found: _SYMBOLS[found[1]], text)
    return _ESCAPED.sub(r"\1", _DELIMITER.sub("", text))


def _math(found: re.Match[str]) -> str:
    return found[1] or found[2] or ""


_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_LANGUAGE, ""),
    (re.compile(r"<br ?/?>"), "\n"),
    (_STRUCK, ""),
    (_HTML, ""),
    (_LINE_START, ""),
    (_MATH, _math),
)


@cache
def _replacements() -> dict[int, str]:
    """Return the characters that `canonical` replaces."""
    table = {
        code: unicodedata.normalize("NFKC", chr(code))
        for first, end in _COMPATIBLE
        for code in range(first, end)
    }
    table |= {ord(each): mark for mark, variants in _QUOTES.items() for each in variants}
    table |= dict.fromkeys(map(ord, _DASHES), "-") | dict.fromkeys(map(ord, _BLANKS), " ")
    return table | dict.fromkeys(map(ord, _INVISIBLE), "")
