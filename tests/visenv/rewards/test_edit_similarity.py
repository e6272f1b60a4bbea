"""Tests edit similarity and R_e: by hand, and against a plain dynamic program."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import DataError
from visenv.rewards.vqa import LONGEST_ANSWER, edit_similarity, soft_score


def distance(first: str, second: str) -> int:
    """Return the Levenshtein distance, computed by the textbook algorithm."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        above, row[0] = row[:], i
        for j, b in enumerate(second, start=1):
            row[j] = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
    return row[-1]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("kitten", "sitting", 1 - 3 / 7),  # two letters changed, one added
        ("cat", "cat", 1.0),
        ("cat", "", 0.0),  # 1 - 3/3
        ("ab", "xy", 0.0),
        ("", "", 1.0),
        ("größe", "grosse", 1 - 3 / 6),  # ö and ß changed, one letter added; code points
    ],
)
def test_edit_similarity(first: str, second: str, expected: float) -> None:
    assert edit_similarity(first, second) == pytest.approx(expected)


@given(st.text(max_size=12), st.text(max_size=12))
def test_edit_similarity_is_the_textbook_one(first: str, second: str) -> None:
    longest = max(len(first), len(second))
    expected = 1 - distance(first, second) / longest if longest else 1.0
    assert edit_similarity(first, second) == pytest.approx(expected)


def test_references_that_count_are_the_three_closest() -> None:
    references = ["dog", "cat", "cats", "cart", "zebra"]
    # Similarity to "cat": cat 1, cats 1 - 1/4, cart 1 - 1/4, dog 0, zebra 1 - 5/5 (5 edits).
    assert soft_score("Cat!", references) == pytest.approx((1 + 0.75 + 0.75) / 3)
    assert soft_score("cat", references, best=1) == 1.0


def test_soft_score_with_fewer_references_than_three() -> None:
    assert soft_score("cat", ["cats"]) == pytest.approx(0.75)
    assert soft_score("cat", ["cats", "cat"]) == pytest.approx(0.875)


def test_soft_score_normalizes_both_texts() -> None:
    assert soft_score("The two dogs.", ["2 dogs"]) == 1.0


def test_similarity_of_two_empty_texts() -> None:
    assert soft_score("the", ["a"]) == 0.0  # both are empty without articles: compared as they are
    assert soft_score("A", ["a"]) == 1.0
    assert soft_score("", [""]) == soft_score(" ", [""]) == 0.0
    assert soft_score("the", ["a"], compat="r1_vlm") == 0.0
    assert soft_score("cat", ["cat"], compat="r1_vlm") == 1.0


def test_soft_score_without_a_reference() -> None:
    with pytest.raises(DataError, match="the sample has none"):
        soft_score("cat", [])


def test_endless_answer_is_not_read() -> None:
    assert soft_score("cat" * LONGEST_ANSWER, ["cat"]) == 0.0


@given(st.text(), st.lists(st.text(), min_size=1, max_size=5))
def test_soft_score_is_between_0_and_1(answer: str, references: list[str]) -> None:
    assert 0.0 <= soft_score(answer, references) <= 1.0
