"""Contains the 19 text checks as tools, which check whether a text satisfies a constraint.

Names and parameters are those of ARM-Thinker's tools (appendix E); each takes ``response``, the
name of a text in the store, and the check's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.checks import CHECKS, DIALECTS, Dialect, TextCheck, find_check, sentence_splitter
from visenv.checks.arguments import (
    Affix,
    AnyAffix,
    AnyBounds,
    AnyKeywords,
    AnyPrecision,
    AnyRanges,
    AnySubstring,
    AnySubstrings,
    Bounds,
    Keywords,
    NoArguments,
    Precision,
    Ranges,
    Substring,
    Substrings,
)
from visenv.errors import DataError, ToolError, UnknownNameError
from visenv.tools.base import Arguments, Store, Tool, ToolResult

RESULT = "Check result: {result}"


class OfText(Arguments):
    """Holds the argument of all text checks."""

    response: str = Field(description="Name of the text to check: text_0, text_1, …")


# These models have the check's own parameters, after the name of the text.


class BoundsOfText(Bounds, OfText):
    """Holds a text and the bounds of a count."""


class RangesOfText(Ranges, OfText):
    """Holds a text and the bounds of a count in each paragraph."""


class SubstringsOfText(Substrings, OfText):
    """Holds a text and the substrings that it must not contain."""


class SubstringOfText(Substring, OfText):
    """Holds a text and the substring that it must not contain."""


class AffixOfText(Affix, OfText):
    """Holds a text and the words that it must begin or end with."""


class KeywordsOfText(Keywords, OfText):
    """Holds a text, keywords and the bounds of their mentions."""


class PrecisionOfText(Precision, OfText):
    """Holds a text and the number of decimals of its numbers."""


class NothingOfText(NoArguments, OfText):
    """Holds a text."""


# These models have the parameters of the published dialects, which accept more values.


class AnyBoundsOfText(AnyBounds, OfText):
    """Holds a text and the bounds of a count."""


class AnyRangesOfText(AnyRanges, OfText):
    """Holds a text and the bounds of a count in each paragraph."""


class AnySubstringsOfText(AnySubstrings, OfText):
    """Holds a text and the substrings that it must not contain."""


class AnySubstringOfText(AnySubstring, OfText):
    """Holds a text and the substring that it must not contain."""


class AnyAffixOfText(AnyAffix, OfText):
    """Holds a text and the words that it must begin or end with."""


class AnyKeywordsOfText(AnyKeywords, OfText):
    """Holds a text, keywords and the bounds of their mentions."""


class AnyPrecisionOfText(AnyPrecision, OfText):
    """Holds a text and the number of decimals of its numbers."""


class _Form(NamedTuple):
    """Describes the tools with one kind of parameters."""

    model: type[OfText]  # parameters in `strict`, after the name of a text
    published: type[OfText]  # parameters of the published dialects
    example: Mapping[str, Any]  # for the prompt
    random: Callable[[np.random.Generator], dict[str, Any]]  # for a random policy


class TextCheckTool(Tool[OfText]):
    """Implements a tool for one check; its result is ``Check result: True`` or ``False``.

    Args:
        check: The name of the check.
        dialect: How the check parses a text, and which arguments it takes (`visenv.checks`).

    Raises:
        UnknownNameError: If there is no such check or dialect.
    """

    def __init__(self, check: str, dialect: Dialect = "strict") -> None:
        self._check: TextCheck[Any] = find_check(check)
        if dialect not in DIALECTS:
            raise UnknownNameError("dialect of the text checks", str(dialect), DIALECTS)
        self._dialect = dialect
        self._form = _FORMS[self._check.arguments]
        self.name = self._check.name
        self.description = f"Checks a text. True if: {self._check.description}"
        self.arguments = self._form.model if dialect == "strict" else self._form.published

    @override
    def call(self, arguments: OfText, store: Store) -> ToolResult:
        """Run the check; ``detail`` contains its ``result``, a bool.

        Raises:
            ToolError: If there is no text of that name (the message lists the available ones), or
                the text has too many punctuation marks to be split into sentences.
            DataError: If NLTK's trained sentence splitter is installed but cannot be read.
        """
        text = store.text(arguments.response)
        try:
            result = self._check(text, arguments, self._dialect)
        except DataError as error:
            sentence_splitter()  # a broken installation is not the policy's error: raises
            raise ToolError(f"{arguments.response} cannot be checked: {error}") from error
        return ToolResult((RESULT.format(result=result),), {"result": result})

    @override
    def example(self) -> OfText:
        return self.arguments(response="text_0", **self._form.example)

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> OfText:
        """Return a random text, and parameters within their usual ranges."""
        names = list(store.texts) or ["text_0"]
        return self.arguments(response=names[rng.integers(len(names))], **self._form.random(rng))


def text_check_tools(dialect: Dialect = "strict") -> tuple[TextCheckTool, ...]:
    """Return all 19 tools, in the papers' order.

    Raises:
        UnknownNameError: If there is no such dialect.
    """
    return tuple(TextCheckTool(name, dialect) for name in CHECKS)


_WORDS: Final = ("the", "and", "image", "because", "one", "In", "Thank you")


def _random_bounds(rng: np.random.Generator) -> list[int]:
    return sorted(int(bound) for bound in rng.integers(0, 9, size=2))


def _random_words(rng: np.random.Generator) -> list[str]:
    return [str(word) for word in rng.choice(_WORDS, size=rng.integers(1, 4), replace=False)]


def _random_limits(rng: np.random.Generator) -> dict[str, int]:
    return dict(zip(("lower_bound", "upper_bound"), _random_bounds(rng), strict=True))


def _random_ranges(rng: np.random.Generator) -> dict[str, list[list[int]]]:
    return {"ranges": [_random_bounds(rng) for _ in range(rng.integers(1, 5))]}


def _random_substrings(rng: np.random.Generator) -> dict[str, list[str]]:
    return {"substrings": _random_words(rng)}


def _random_substring(rng: np.random.Generator) -> dict[str, str]:
    return {"substring": _random_words(rng)[0]}


def _random_keywords(rng: np.random.Generator) -> dict[str, Any]:
    lower, upper = _random_bounds(rng)
    words = _random_words(rng)
    return {"keywords": words, "lower_bound_times": lower, "upper_bound_times": upper}


def _random_precision(rng: np.random.Generator) -> dict[str, int]:
    return {"precision": int(rng.integers(4))}


def _random_nothing(rng: np.random.Generator) -> dict[str, Any]:
    return {}


_FORMS: Final[Mapping[type[Arguments], _Form]] = {
    Bounds: _Form(
        BoundsOfText, AnyBoundsOfText, {"lower_bound": 2, "upper_bound": 4}, _random_limits
    ),
    Ranges: _Form(RangesOfText, AnyRangesOfText, {"ranges": [[1, 2], [3, 5]]}, _random_ranges),
    Substrings: _Form(
        SubstringsOfText, AnySubstringsOfText, {"substrings": ["very", "nice"]}, _random_substrings
    ),
    Substring: _Form(SubstringOfText, AnySubstringOfText, {"substring": "very"}, _random_substring),
    Affix: _Form(AffixOfText, AnyAffixOfText, {"substring": "In short"}, _random_substring),
    Keywords: _Form(
        KeywordsOfText,
        AnyKeywordsOfText,
        {"keywords": ["river", "bridge"], "lower_bound_times": 1, "upper_bound_times": 3},
        _random_keywords,
    ),
    Precision: _Form(PrecisionOfText, AnyPrecisionOfText, {"precision": 2}, _random_precision),
    NoArguments: _Form(NothingOfText, NothingOfText, {}, _random_nothing),
}
