"""Defines the table of the 19 checks, and `check`, which runs one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, get_args

from pydantic import ValidationError

from visenv.checks import keywords, lengths, numbers, substrings
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
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.tools.base import Arguments, complaint

Dialect = Literal["strict", "arm", "mmif"]
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True)
class TextCheck(Generic[ArgumentsT]):
    """Describes one check: a row of the table.

    Attributes:
        name: The name of the tool in the papers.
        description: The condition under which the check passes.
        arguments: The model of the check's parameters in ``strict``.
        strict: Decides for a response and its arguments; `arm` and `mmif` return the results of the
            public code.
    """

    name: str
    description: str
    arguments: type[ArgumentsT]
    strict: Callable[[str, ArgumentsT], bool]
    arm: Callable[[str, ArgumentsT], bool]
    mmif: Callable[[str, ArgumentsT], bool]

    def arguments_of(self, dialect: Dialect) -> type[Arguments]:
        """Return the model of the parameters in a dialect; the published dialects accept more."""
        return self.arguments if dialect == "strict" else PUBLISHED[self.arguments]

    def __call__(self, response: str, arguments: ArgumentsT, dialect: Dialect = "strict") -> bool:
        """Return whether a response passes.

        Raises:
            DataError: If the response cannot be split into sentences (`split_sentences`).
        """
        decide: Callable[[str, ArgumentsT], bool] = getattr(self, dialect)
        return decide(response, arguments)


_ROWS: Final[tuple[TextCheck[Any], ...]] = (
    TextCheck(
        "check_whether_response_paragraph_number_in_range",
        "The number of paragraphs is from lower_bound to upper_bound.",
        Bounds,
        strict=lengths.paragraph_number_strict,
        arm=lengths.paragraph_number_published,
        mmif=lengths.paragraph_number_published,
    ),
    TextCheck(
        "check_whether_response_sentence_number_in_range",
        "The number of sentences is from lower_bound to upper_bound.",
        Bounds,
        strict=lengths.sentence_number_strict,
        arm=lengths.sentence_number_published,
        mmif=lengths.sentence_number_published,
    ),
    TextCheck(
        "check_whether_each_paragraph_sentence_number_in_range",
        "In every paragraph, the number of sentences (of lines, where it is verse) is from "
        "lower_bound to upper_bound.",
        Bounds,
        strict=lengths.each_paragraph_sentence_number_strict,
        arm=lengths.each_paragraph_sentence_number_arm,
        mmif=lengths.each_paragraph_sentence_number_mmif,
    ),
    TextCheck(
        "check_whether_each_paragraph_sentence_number_in_range_list",
        "There are as many paragraphs as ranges, and the number of sentences of each paragraph is "
        "in its own range.",
        Ranges,
        strict=lengths.each_paragraph_sentence_number_list_strict,
        arm=lengths.each_paragraph_sentence_number_list_published,
        mmif=lengths.each_paragraph_sentence_number_list_published,
    ),
    TextCheck(
        "check_whether_response_word_count_in_range",
        "The number of words is from lower_bound to upper_bound.",
        Bounds,
        strict=lengths.word_count_strict,
        arm=lengths.word_count_arm,
        mmif=lengths.word_count_mmif,
    ),
    TextCheck(
        "check_whether_each_paragraph_word_count_in_range",
        "In every paragraph, the number of words is from lower_bound to upper_bound.",
        Bounds,
        strict=lengths.each_paragraph_word_count_strict,
        arm=lengths.each_paragraph_word_count_arm,
        mmif=lengths.each_paragraph_word_count_mmif,
    ),
    TextCheck(
        "check_whether_whole_response_not_contain_certain_substrings",
        "None of the substrings occurs anywhere, not even inside a word.",
        Substrings,
        strict=substrings.contains_none_strict,
        arm=substrings.contains_none_arm,
        mmif=substrings.contains_none_mmif,
    ),
    TextCheck(
        "check_whether_whole_response_not_contain_certain_substring",
        "The substring does not occur anywhere, not even inside a word.",
        Substring,
        strict=substrings.does_not_contain_strict,
        arm=substrings.does_not_contain_arm,
        mmif=substrings.does_not_contain_mmif,
    ),
    TextCheck(
        "check_whether_each_sentence_begin_with_certain_substring",
        "Every sentence begins with the substring.",
        Affix,
        strict=substrings.each_sentence_begins_strict,
        arm=substrings.each_sentence_begins_arm,
        mmif=substrings.each_sentence_begins_mmif,
    ),
    TextCheck(
        "check_whether_each_paragraph_begin_with_certain_substring",
        "Every paragraph begins with the substring.",
        Affix,
        strict=substrings.each_paragraph_begins_strict,
        arm=substrings.each_paragraph_begins_arm,
        mmif=substrings.each_paragraph_begins_mmif,
    ),
    TextCheck(
        "check_whether_each_paragraph_end_with_certain_substring",
        "Every paragraph ends with the substring.",
        Affix,
        strict=substrings.each_paragraph_ends_strict,
        arm=substrings.each_paragraph_ends_arm,
        mmif=substrings.each_paragraph_ends_mmif,
    ),
    TextCheck(
        "check_whether_each_sentence_end_with_certain_substring",
        "Every sentence ends with the substring.",
        Affix,
        strict=substrings.each_sentence_ends_strict,
        arm=substrings.each_sentence_ends_arm,
        mmif=substrings.each_sentence_ends_mmif,
    ),
    TextCheck(
        "check_whether_whole_response_begin_with_certain_substring",
        "The response begins with the substring.",
        Affix,
        strict=substrings.response_begins_strict,
        arm=substrings.response_begins_arm,
        mmif=substrings.response_begins_mmif,
    ),
    TextCheck(
        "check_whether_whole_response_end_with_certain_substring",
        "The response ends with the substring.",
        Affix,
        strict=substrings.response_ends_strict,
        arm=substrings.response_ends_arm,
        mmif=substrings.response_ends_mmif,
    ),
    TextCheck(
        "check_whether_each_keyword_in_list_mentioned_in_range",
        "Every keyword is mentioned from lower_bound_times to upper_bound_times times.",
        Keywords,
        strict=keywords.each_keyword_strict,
        arm=keywords.each_keyword_arm,
        mmif=keywords.each_keyword_mmif,
    ),
    TextCheck(
        "check_whether_total_keyword_in_list_mentioned_in_range",
        "All keywords together are mentioned from lower_bound_times to upper_bound_times times.",
        Keywords,
        strict=keywords.total_keywords_strict,
        arm=keywords.total_keywords_arm,
        mmif=keywords.total_keywords_mmif,
    ),
    TextCheck(
        "check_percentage_number_precision_in_response",
        "Every number before a % sign has exactly that many digits after its decimal point; a "
        "whole number has none.",
        Precision,
        strict=numbers.percentage_precision_strict,
        arm=numbers.percentage_precision_arm,
        mmif=numbers.percentage_precision_mmif,
    ),
    TextCheck(
        "check_number_precision_in_response",
        "Every number has exactly that many digits after its decimal point; a whole number has "
        "none.",
        Precision,
        strict=numbers.number_precision_strict,
        arm=numbers.number_precision_arm,
        mmif=numbers.number_precision_mmif,
    ),
    TextCheck(
        "check_whether_has_no_arabic_number_in_response",
        "No number is written in digits.",
        NoArguments,
        strict=numbers.has_no_number_strict,
        arm=numbers.has_no_number_arm,
        mmif=numbers.has_no_number_mmif,
    ),
)

PUBLISHED: Final[Mapping[type[Arguments], type[Arguments]]] = {
    Bounds: AnyBounds,
    Ranges: AnyRanges,
    Substrings: AnySubstrings,
    Substring: AnySubstring,
    Affix: AnyAffix,
    Keywords: AnyKeywords,
    Precision: AnyPrecision,
    NoArguments: NoArguments,
}
"""Maps the model of parameters of ``strict`` to that of the published dialects."""

CHECKS: Final[Mapping[str, TextCheck[Any]]] = {row.name: row for row in _ROWS}
"""The 19 checks by name, in the order of the papers."""


def check(
    name: str,
    response: str,
    arguments: Mapping[str, Any] | Arguments,
    dialect: Dialect = "strict",
) -> bool:
    """Return whether a response passes a check.

    ::

        >>> bounds = {"lower_bound": 1, "upper_bound": 2}
        >>> check("check_whether_response_sentence_number_in_range", "Short. Clear.", bounds)
        True

    Args:
        name: A key of `CHECKS`; MM-IFEngine's spelling ``metioned`` is accepted.
        response: The text; its length is limited only by checks that split it into sentences.
        arguments: The check's parameters; the published dialects accept more values.
        dialect: ``"strict"``, or the behavior of the public code of a paper: ``"arm"``, ``"mmif"``.

    Raises:
        UnknownNameError: If there is no such check or dialect; suggests the nearest.
        ConfigurationError: If the arguments are invalid for the check.
        DataError: If the response cannot be split into sentences (`split_sentences`).
    """
    found = find_check(name)
    if dialect not in DIALECTS:
        raise UnknownNameError("dialect of the text checks", str(dialect), DIALECTS)
    model = found.arguments_of(dialect)
    if not isinstance(arguments, model):
        arguments = _validated(found, model, arguments)
    return found(response, arguments, dialect)


def find_check(name: str) -> TextCheck[Any]:
    """Return the check with that name; MM-IFEngine's spelling ``metioned`` is accepted.

    Raises:
        UnknownNameError: If there is no such check; suggests the nearest.
    """
    found = CHECKS.get(name) or CHECKS.get(name.replace("_metioned_", "_mentioned_"))
    if found is None:
        raise UnknownNameError("text check", name, CHECKS)
    return found


def _validated(found: TextCheck[Any], model: type[Arguments], arguments: Any) -> Arguments:
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        raise ConfigurationError(complaint(found.name, model, error)) from None
