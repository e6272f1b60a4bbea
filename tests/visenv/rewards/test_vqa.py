"""Tests the VQA score: special cases of the public evaluation, and scores worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import DataError, UnknownNameError
from visenv.rewards.vqa import LONGEST_ANSWER, normalize_answer, vqa_score


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Results of the public code.
        ("The U.S.A.", "usa"),
        ("3.5", "3.5"),
        ("1,000", "1000"),
        ("none", "0"),
        ("Two dogs", "2 dogs"),
        ("dont", "don't"),
        ("a-b", "b"),
        ("Coca-Cola!", "coca cola"),
        ("half-price, 50", "half price 50"),
        ("$5.00.", "$5.00"),
        ("i.b.m", "ibm"),
        ("10%", "10%"),
        ("the", ""),
        # One rule each.
        ("line\none\ttwo", "line 1 2"),
        ("x- y-z", "x yz"),  # "-" is next to a blank once, so it is deleted everywhere
        ("1,000-2", "10002"),  # a comma between digits: all punctuation is deleted
        (".5.", ".5"),
        ("." * 33 + "x", ".x"),  # only 32 periods are removed
        ("ten zero", "10 0"),
        ("A N an The cat", "n cat"),
        ("couldnt've", "couldn't've"),
        ("couldn'tve", "couldn't've"),
        ("couldntve", "couldntve"),  # two apostrophes are missing: not in the table
        ("yall'd've", "y'all'd've"),
        ("somebody'd", "somebodyd"),  # this entry of the table is reversed
        ("shes", "shes"),  # not in the table
        ("Im", "im"),  # this entry of the table has a capital, so it never matches
        ("", ""),
    ],
)
def test_normalization(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected


@given(st.text())
def test_normalization_never_fails_and_leaves_no_articles(text: str) -> None:
    words = normalize_answer(text).split(" ")
    assert not {"a", "an", "the"} & set(words)


@pytest.mark.parametrize(
    ("matches", "official", "min3"),
    [
        # official, n of 10: (n min(1, (n-1)/3) + (10-n) min(1, n/3)) / 10
        (0, 0.0, 0.0),
        (1, 0.3, 1 / 3),  # (1 * 0 + 9 * 1/3) / 10
        (2, 0.6, 2 / 3),  # (2 * 1/3 + 8 * 2/3) / 10 = (2/3 + 16/3) / 10
        (3, 0.9, 1.0),  # (3 * 2/3 + 7 * 1) / 10
        (4, 1.0, 1.0),  # (4 * 1 + 6 * 1) / 10
        (5, 1.0, 1.0),
        (6, 1.0, 1.0),
        (7, 1.0, 1.0),
        (8, 1.0, 1.0),
        (9, 1.0, 1.0),
        (10, 1.0, 1.0),
    ],
)
def test_vqa_score_averages_over_ten_references(matches: int, official: float, min3: float) -> None:
    references = ["Cat."] * matches + ["dog"] * (10 - matches)
    assert vqa_score("the cat", references) == pytest.approx(official)
    assert vqa_score("the cat", references, mode="min3") == pytest.approx(min3)


@pytest.mark.parametrize(
    ("references", "official", "min3"),
    [
        (["cat"], 1.0, 1.0),
        (["dog"], 0.0, 0.0),
        (["cat", "cat"], 1.0, 1.0),
        (["cat", "dog"], 0.5, 0.5),  # official: leaving cat out 0 of 1, leaving dog out 1 of 1
        (["cat", "cat", "dog"], 2 / 3, 2 / 3),  # official: (1/2 + 1/2 + 2/2) / 3
        (["cat", "dog", "dog"], 1 / 3, 1 / 3),  # official: (0/2 + 1/2 + 1/2) / 3
        (["cat", "dog", "dog", "dog"], 0.25, 1 / 3),  # official: (0 + 3 * 1/3) / 4
    ],
)
def test_vqa_score_with_fewer_references(
    references: list[str], official: float, min3: float
) -> None:
    assert vqa_score("cat", references) == pytest.approx(official)
    assert vqa_score("cat", references, mode="min3") == pytest.approx(min3)


@given(st.text(), st.lists(st.text(), min_size=1, max_size=10))
def test_score_is_between_0_and_1(answer: str, references: list[str]) -> None:
    assert 0.0 <= vqa_score(answer, references) <= 1.0


@given(st.text(max_size=50), st.integers(1, 10))
def test_vqa_score_of_a_unanimous_answer_is_1(answer: str, people: int) -> None:
    assert vqa_score(answer, [answer] * people) == pytest.approx(float(answer.strip() != ""))


@pytest.mark.parametrize(
    ("answer", "reference", "score"),
    [
        ("", "a", 0.0),
        ("the", "a", 0.0),
        ("A", "a", 1.0),
        ("a.", "the", 0.0),
        ("", "", 0.0),
        ("?", "?", 1.0),
        ("cafe\u0301", "caf\u00e9", 1.0),
    ],
)
def test_text_that_becomes_empty_equals_no_other(answer: str, reference: str, score: float) -> None:
    assert vqa_score(answer, [reference]) == score


def test_published_score_of_groundlight_keeps_its_quirk() -> None:
    assert vqa_score("the", ["a"], mode="min3") == 1.0


def test_unknown_truth_is_not_a_wrong_answer() -> None:
    with pytest.raises(DataError, match="the sample has none"):
        vqa_score("cat", [])


def test_unknown_mode_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'official'"):
        vqa_score("cat", ["cat"], mode="oficial")  # type: ignore[arg-type]


def test_endless_answer_is_not_read() -> None:
    assert vqa_score("cat" + " cat" * LONGEST_ANSWER, ["cat"]) == 0.0
    assert vqa_score("cat" + " " * 1_000_000, ["cat"]) == 1.0  # blanks at the ends do not count
