"""Texts made to be slow or to break something: quadratic time would run into the time limit."""

from __future__ import annotations

from typing import Any

import pytest

from visenv.checks import CHECKS, DIALECTS, Dialect, check, split_sentences

MEGABYTE = 1_000_000
LONG = 10_000

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


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_answers_in_linear_time(name: str, dialect: Dialect) -> None:
    for piece in PIECES.values():
        text = (piece * (LONG // len(piece) + 1))[:LONG]
        for arguments in ARGUMENTS[CHECKS[name].arguments.__name__]:
            assert check(name, f"{text}x", arguments, dialect) in (True, False)


FAST = [name for name in CHECKS if "sentence" not in name and "keyword" not in name]


@pytest.mark.parametrize("piece", ["digits", "thousands", "points", "blank lines", "NUL"])
def test_a_megabyte(piece: str) -> None:
    text = PIECES[piece] * (MEGABYTE // len(PIECES[piece]))
    for name in FAST:
        for arguments in ARGUMENTS[CHECKS[name].arguments.__name__]:
            assert check(name, text, arguments) in (True, False)


def test_a_megabyte_of_sentences() -> None:
    assert len(split_sentences("So it is, as ever. " * (MEGABYTE // 19))) == MEGABYTE // 19
