"""Tests all checks on long hostile texts: code with quadratic time would exceed the time limit."""

from __future__ import annotations

from typing import Any

import pytest

from visenv.checks import CHECKS, DIALECTS, Dialect, check, split_sentences
from visenv.errors import DataError

MEGABYTE = 1_000_000
LONG = 10_000
# NLTK splits in linear time too, but takes 100 times longer than the other checks.
LONG_OF_SENTENCES = 1_000

PIECES = {
    "letters": "a",
    "digits": "1",
    "thousands": ",111",
    "versions": "1.1.",
    "points": ".",
    "marks": "?!",
    "sentences": "a. ",
    "quotes": '." ',
    "dashes": "-",
    "underscores": "_",
    "blanks": " \t",
    "lines": "\n",
    "blank lines": "\n \n",
    "line separators": "\x85\u2028\x1c",
    "list items": "1. ",
    "percent": "1 ",
    "exponents": "1e1",
    "NUL": "\0",
    "lone surrogates": "\ud800\udc00 ",
    "combining marks": "e\u0301\u0302",
    "hashtags": "#a",
}

SENTENCES = "check_whether_response_sentence_number_in_range"

ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "Bounds": [{"lower_bound": 0, "upper_bound": 10**30}],
    "Ranges": [{"ranges": [[0, 1]] * 100}],
    "Substrings": [{"substrings": ["(a+)+$", "a" * 999 + "b", "\n\n\n"]}],
    "Substring": [{"substring": "a" * 999 + "b"}],
    "Affix": [{"substring": "a" * 1000}, {"substring": "-" * 999 + "b"}, {"substring": "..."}],
    "Keywords": [
        {
            "keywords": ["(a+)+$", "[", "\\", "a" * 50, "#a", "-" * 50],
            "lower_bound_times": 0,
            "upper_bound_times": 10**30,
        }
    ],
    "Precision": [{"precision": 0}, {"precision": 10**30}],
    "NoArguments": [{}],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_answers_in_linear_time(name: str, dialect: Dialect) -> None:
    length = LONG_OF_SENTENCES if "sentence" in name else LONG
    for piece in PIECES.values():
        text = (piece * (length // len(piece) + 1))[:length]
        for arguments in ARGUMENTS[CHECKS[name].arguments.__name__]:
            assert check(name, f"{text}x", arguments, dialect) in (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_sentences_in_linear_time(piece: str) -> None:
    text = (piece * (LONG // len(piece) + 1))[:LONG]
    assert split_sentences(text) or not text.strip()


@pytest.mark.parametrize("piece", ["1. ", ". ", "J. S. ", '." ', "?!"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_with_more_marks_than_nltk_splits_in_time(piece: str, dialect: Dialect) -> None:
    text = piece * (200_000 // len(piece))
    with pytest.raises(DataError, match="cannot be split into sentences in time"):
        check(SENTENCES, f"It is {text}", {"lower_bound": 0, "upper_bound": 1}, dialect)


FAST = [name for name in CHECKS if "sentence" not in name and "keyword" not in name]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["digits", "thousands", "points", "blank lines", "NUL"])
def test_checks_read_a_megabyte_in_time(piece: str) -> None:
    text = PIECES[piece] * (MEGABYTE // len(PIECES[piece]))
    for name in FAST:
        for arguments in ARGUMENTS[CHECKS[name].arguments.__name__]:
            assert check(name, text, arguments) in (True, False)


def test_checks_read_a_megabyte_of_sentences_in_time() -> None:
    sentence = f"So it is, {'as ' * 50}ever. "
    number = MEGABYTE // len(sentence)
    assert len(split_sentences(sentence * number)) == number
