from __future__ import annotations

from typing import Any

import pytest

from visenv.checks import CHECKS, Dialect, check, find_check
from visenv.errors import ConfigurationError, UnknownNameError

WORDS = "check_whether_response_word_count_in_range"
RANGES = "check_whether_each_paragraph_sentence_number_in_range_list"
NONE_OF = "check_whether_whole_response_not_contain_certain_substrings"
NOT = "check_whether_whole_response_not_contain_certain_substring"
BEGINS = "check_whether_whole_response_begin_with_certain_substring"
EACH_KEYWORD = "check_whether_each_keyword_in_list_mentioned_in_range"
PRECISION = "check_number_precision_in_response"
NO_NUMBER = "check_whether_has_no_arabic_number_in_response"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        (WORDS, {"lower_bound": 5, "upper_bound": 3}, "lower bound 5 is above the upper bound 3"),
        (WORDS, {"lower_bound": -1, "upper_bound": 3}, "greater than or equal to 0"),
        (WORDS, {"lower_bound": "1", "upper_bound": 3}, "valid integer"),
        (WORDS, {"lower_bound": True, "upper_bound": 3}, "valid integer"),
        (WORDS, {"lower_bound": 1.5, "upper_bound": 3}, "valid integer"),
        (WORDS, {"lower_bound": 1}, "upper_bound: Field required"),
        (WORDS, {"lower_bound": 1, "upper_bound": 3, "unit": "words"}, "unit: Extra inputs"),
        (WORDS, [1, 2], "takes lower_bound, upper_bound"),
        (RANGES, {"ranges": []}, "at least 1 item"),
        (RANGES, {"ranges": [[1, 2], [3]]}, "ranges.1: List should have at least 2 items"),
        (RANGES, {"ranges": [[1, 2], [4, 3]]}, "lower bound 4 is above the upper bound 3"),
        (NONE_OF, {"substrings": []}, "at least 1 item"),
        (NONE_OF, {"substrings": [""]}, "at least 1 character"),
        (NONE_OF, {"substrings": "cat"}, "valid list"),
        (NOT, {"substring": ""}, "at least 1 character"),
        (NOT, {"substring": "x" * 1001}, "at most 1000 characters"),
        (NOT, {"substring": "\ud800"}, "valid string"),
        (BEGINS, {"substring": " \n"}, "more than blanks"),
        (
            EACH_KEYWORD,
            {"keywords": [], "lower_bound_times": 0, "upper_bound_times": 1},
            "at least 1 item",
        ),
        (
            EACH_KEYWORD,
            {"keywords": ["a", " "], "lower_bound_times": 0, "upper_bound_times": 1},
            "keywords.1",
        ),
        (
            EACH_KEYWORD,
            {"keywords": ["a"], "lower_bound_times": 2, "upper_bound_times": 1},
            "swap them",
        ),
        (
            EACH_KEYWORD,
            {"keywords": ["a"] * 101, "lower_bound_times": 0, "upper_bound_times": 1},
            "at most 100 items",
        ),
        (PRECISION, {"precision": -1}, "greater than or equal to 0"),
        (NO_NUMBER, {"precision": 1}, "takes no arguments"),
    ],
)
def test_arguments_that_are_invalid_give_the_reason(name: str, arguments: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        check(name, "text", arguments)
    assert said in str(caught.value)


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'check_number_precision_in_response'"):
        check("check_number_precision", "text", {})
    with pytest.raises(UnknownNameError, match="Did you mean 'strict'"):
        check(NO_NUMBER, "text", {}, "strickt")  # type: ignore[arg-type]


def test_misspelled_names_of_mm_ifengine_are_understood() -> None:
    assert find_check("check_whether_each_keyword_in_list_metioned_in_range").name == EACH_KEYWORD
    total = "check_whether_total_keyword_in_list_metioned_in_range"
    arguments = {"keywords": ["cat"], "lower_bound_times": 1, "upper_bound_times": 1}
    assert check(total, "a cat", arguments)


def test_model_is_taken_as_it_is() -> None:
    model = CHECKS[PRECISION].arguments(precision=1)
    assert check(PRECISION, "2.5", model)


def test_model_of_another_check_is_refused() -> None:
    model = CHECKS[PRECISION].arguments(precision=1)
    with pytest.raises(ConfigurationError, match="takes lower_bound"):
        check(WORDS, "2.5", model)


def test_fields_are_in_the_order_of_mm_ifengines_positional_parameters() -> None:
    assert list(CHECKS[WORDS].arguments.model_fields) == ["lower_bound", "upper_bound"]
    assert list(CHECKS[EACH_KEYWORD].arguments.model_fields) == [
        "keywords",
        "lower_bound_times",
        "upper_bound_times",
    ]


TOTAL = "check_whether_total_keyword_in_list_mentioned_in_range"
ENDS = "check_whether_each_sentence_end_with_certain_substring"
TEXT = "Two cats. One dog."


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["arm", "mmif"])
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        (WORDS, {"lower_bound": 5, "upper_bound": 3}, False),
        (WORDS, {"lower_bound": -1, "upper_bound": 4}, True),
        (WORDS, {"lower_bound": -3, "upper_bound": -1}, False),
        (RANGES, {"ranges": []}, False),  # one paragraph, but no range
        (RANGES, {"ranges": [[2, 1]]}, False),
        (NONE_OF, {"substrings": []}, True),
        (NONE_OF, {"substrings": [""]}, False),  # the empty text occurs in every text
        (NOT, {"substring": ""}, False),
        (NOT, {"substring": "\n"}, True),
        (BEGINS, {"substring": ""}, True),
        (ENDS, {"substring": ""}, True),
        (EACH_KEYWORD, {"keywords": [], "lower_bound_times": 1, "upper_bound_times": 2}, True),
        (TOTAL, {"keywords": [], "lower_bound_times": 1, "upper_bound_times": 2}, False),
        (TOTAL, {"keywords": [], "lower_bound_times": 0, "upper_bound_times": 2}, True),
        # The empty keyword occurs at word boundaries: four words have eight.
        (TOTAL, {"keywords": [""], "lower_bound_times": 8, "upper_bound_times": 8}, True),
        # A blank counts between two letters: in "Two cats" and in "One dog".
        (TOTAL, {"keywords": [" "], "lower_bound_times": 2, "upper_bound_times": 2}, True),
        (PRECISION, {"precision": -1}, True),  # the text has no number
    ],
)
def test_published_dialects_answer_what_strict_refuses(
    dialect: Dialect, name: str, arguments: dict[str, Any], answer: bool
) -> None:
    assert check(name, TEXT, arguments, dialect) is answer


@pytest.mark.parametrize("dialect", ["arm", "mmif"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"lower_bound": "1", "upper_bound": 3},
        {"lower_bound": 1},
        {"lower_bound": 1.5, "upper_bound": 2},
    ],
)
def test_published_dialects_refuse_what_is_no_number(
    dialect: Dialect, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError):
        check(WORDS, TEXT, arguments, dialect)
