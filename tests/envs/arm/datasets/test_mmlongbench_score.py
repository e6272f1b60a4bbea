"""Tests the score of MMLongBench-Doc: golden values of its script, and inputs that made it fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.datasets.mmlongbench_score import FORMATS, mmlongbench_score
from visenv.errors import DataError

GOLDEN = [  # reference, answer, format, score of the official script
    ("5", "5.0", "Int", 1),
    ("5", "five", "Int", 0),
    ("0.25", "25%", "Float", 1),
    ("10%", "0.1", "Float", 1),
    ("100", "100.9", "Float", 1),
    ("100", "101.1", "Float", 0),
    ("Paris", "paris, France", "Str", 0),
    ("hello", "helo", "Str", 0.8),
    ("3 kg", "3kg", "Str", 0.75),
    ("['a','b']", "['b','a']", "List", 1),
    ("['a','b']", "['a']", "List", 0),
]


@pytest.mark.parametrize(("reference", "answer", "form", "score"), GOLDEN)
def test_golden_values(reference: str, answer: str, form: str, score: float) -> None:
    assert mmlongbench_score(answer, reference, form) == pytest.approx(score)


@pytest.mark.parametrize(
    ("reference", "answer", "form", "score"),
    [
        ("5", "5.9", "Int", 1),  # truncated to a whole number, as in the script
        ("5", "inf", "Int", 0),
        ("5", "nan", "Int", 0),
        ("five", "five", "Int", 0),  # the reference is no number
        ("$1,5", "1.5", "Float", 0),
        ("1.005", "$1.0 (about)", "Float", 1),  # brackets and signs are removed; 0.5 % apart
        ("0.333", "33.3", "Float", 1),
        ("5", "inf", "Float", 0),
        ("5", "nan", "Float", 0),
        ("nan", "nan", "Float", 0),
        ("Not answerable", "not answerable", "None", 1),
        ("https://w.wiki/6gb", "https://w.wiki/6gc", "Str", 0),  # a link is right or wrong
        ("https://w.wiki/6gb", "HTTPS://w.wiki/6gb", "Str", 1),
        ("page 12", "page 13", "Str", 0),
        ("2024-05-01", "2024-05-02", "Str", 0),
        ("10:30 a.m.", "10:31 a.m.", "Str", 0),
        ("a@b.org", "a@c.org", "Str", 0),
        ("train.py", "train.p", "Str", 0),
        ("'quoted'", "quoted (in brackets)", "Str", 1),
        ("['White', '10%']", "['10', 'white']", "List", 1),  # sorted: "10" first, and as a number
        ("['White', '10%']", "['11', 'white']", "List", 0),
        ("['red', 'blue']", "['redd', 'blue']", "List", 0.75),  # the lowest: 1 - 1/4
        ("[]", "[]", "List", 1),
        ("red", "red", "List", 1),
        ("['red']", "[__import__('os')]", "List", 0),  # never evaluated
        ("['red']", "[" * 9_000, "List", 0),
        ("hello", "x" * 10_001, "Str", 0),
    ],
)
def test_mmlongbench_score_by_hand(reference: str, answer: str, form: str, score: float) -> None:
    assert mmlongbench_score(answer, reference, form) == pytest.approx(score)


def test_unknown_format_is_named() -> None:
    with pytest.raises(DataError, match="must be one of Int, Float"):
        mmlongbench_score("a", "a", "Text")


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(FORMATS))
def test_mmlongbench_score_of_any_answer_lies_in_0_to_1(
    answer: str, reference: str, form: str
) -> None:
    assert 0 <= mmlongbench_score(answer, reference, form) <= 1


@given(st.sampled_from(["(", ")", "[", "'", " ", "1", "%", "$"]), st.integers(1, 10_000))
def test_long_runs_of_one_character(character: str, count: int) -> None:
    for form in FORMATS:
        assert 0 <= mmlongbench_score(character * count, "12", form) <= 1
