"""Defines the parameters of the checks, with one model for each kind of parameters.

The models of ``strict`` refuse parameters with which a check has a fixed or accidental result:
bounds in the wrong order, an empty list, a text of blanks. Each of them extends a model of the
published dialects (``Any…``), which accepts the parameters that the public code accepts: any
integers as bounds, empty lists, empty texts. In every dialect texts and lists have a maximum size,
so that no call takes long.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from visenv.tools.base import Arguments, shown

_LONGEST_TEXT = 1000
_LONGEST_LIST = 100


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold more than blanks")
    return text


def _ordered(bounds: list[int]) -> list[int]:
    _require_order(*bounds)
    return bounds


def _require_order(lower: int, upper: int) -> None:
    if lower > upper:
        raise ValueError(
            f"the lower bound {shown(lower)} is above the upper bound {shown(upper)}; swap them"
        )


Count = Annotated[int, Field(ge=0)]
AnyText = Annotated[str, Field(max_length=_LONGEST_TEXT)]
Text = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]
Phrase = Annotated[Text, AfterValidator(_not_blank)]


class NoArguments(Arguments):
    """Defines no parameters, for a check that needs only the response."""


class AnyBounds(Arguments):
    """Defines bounds of a count, in any order and possibly negative."""

    lower_bound: int = Field(description="The smallest allowed number.")
    upper_bound: int = Field(description="The largest allowed number.")


class AnyRanges(Arguments):
    """Defines bounds of a count in each paragraph, in any order."""

    ranges: Annotated[
        list[Annotated[list[int], Field(min_length=2, max_length=2)]],
        Field(
            max_length=_LONGEST_LIST,
            description="[smallest, largest] allowed number for each paragraph, in order; there "
            "must be as many paragraphs.",
        ),
    ]


class AnySubstrings(Arguments):
    """Defines texts that must not occur; the list or a text may be empty."""

    substrings: Annotated[
        list[AnyText],
        Field(max_length=_LONGEST_LIST, description="The texts, none of which may occur."),
    ]


class AnySubstring(Arguments):
    """Defines a text that must not occur, which may be empty."""

    substring: AnyText = Field(description="The text that must not occur.")


class AnyAffix(Arguments):
    """Defines a required beginning or end, which may be empty."""

    substring: AnyText = Field(description="The text it must begin or end with.")


class AnyKeywords(Arguments):
    """Defines keywords, which may be empty, and bounds of their count, in any order."""

    keywords: Annotated[
        list[AnyText], Field(max_length=_LONGEST_LIST, description="Words or phrases to count.")
    ]
    lower_bound_times: int = Field(description="The smallest allowed number of mentions.")
    upper_bound_times: int = Field(description="The largest allowed number of mentions.")


class AnyPrecision(Arguments):
    """Defines the precision of numbers, which may be negative."""

    precision: int = Field(description="The number of digits after the decimal point.")


class Bounds(AnyBounds):
    """Defines bounds of a count; both bounds are allowed values."""

    lower_bound: Count = Field(description="The smallest allowed number.")
    upper_bound: Count = Field(description="The largest allowed number.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _require_order(self.lower_bound, self.upper_bound)
        return self


class Ranges(AnyRanges):
    """Defines bounds of a count in each paragraph."""

    ranges: Annotated[
        list[Annotated[list[Count], Field(min_length=2, max_length=2), AfterValidator(_ordered)]],
        Field(
            min_length=1,
            max_length=_LONGEST_LIST,
            description="[smallest, largest] allowed number for each paragraph, in order; there "
            "must be as many paragraphs.",
        ),
    ]


class Substrings(AnySubstrings):
    """Defines texts that must not occur."""

    substrings: Annotated[
        list[Text],
        Field(
            min_length=1,
            max_length=_LONGEST_LIST,
            description="The texts, none of which may occur.",
        ),
    ]


class Substring(AnySubstring):
    """Defines a text that must not occur."""

    substring: Text = Field(description="The text that must not occur.")


class Affix(AnyAffix):
    """Defines a required beginning or end."""

    substring: Phrase = Field(description="The text it must begin or end with.")


class Keywords(AnyKeywords):
    """Defines keywords and bounds of their count; both bounds are allowed values."""

    keywords: Annotated[
        list[Phrase],
        Field(min_length=1, max_length=_LONGEST_LIST, description="Words or phrases to count."),
    ]
    lower_bound_times: Count = Field(description="The smallest allowed number of mentions.")
    upper_bound_times: Count = Field(description="The largest allowed number of mentions.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _require_order(self.lower_bound_times, self.upper_bound_times)
        return self


class Precision(AnyPrecision):
    """Defines the precision of numbers."""

    precision: Count = Field(description="The number of digits after the decimal point.")
