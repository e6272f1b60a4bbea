"""Tests ANLS with values by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.datasets.anls import anls, similarity_above
from visenv.errors import DataError


@pytest.mark.parametrize(
    ("answer", "references", "score"),
    [
        ("ITC Limited", ["itc limited", "ITC"], 1.0),
        ("itc  limited\n", ["ITC Limited"], 1.0),
        ("hello", ["helo"], 0.8),  # one deletion of five: 1 - 1/5
        ("abcd", ["abxy"], 0.5),  # 1 - 2/4: a similarity of the threshold counts
        ("abcd", ["axyz"], 0.0),  # 1 - 3/4
        ("cafe\u0301", ["caf\u00e9"], 1.0),
        ("", [""], 0.0),
        ("abcde", ["abcxy"], 0.6),  # 1 - 2/5
        ("abcde", ["abcxy", "abcdx"], 0.8),  # the closest reference counts
        ("", ["x"], 0.0),
        ("x" * 10_001, ["x" * 10_001], 0.0),  # too long to be an answer
    ],
)
def test_anls_by_hand(answer: str, references: list[str], score: float) -> None:
    assert anls(answer, references) == pytest.approx(score)


def test_anls_with_another_threshold() -> None:
    assert anls("abcd", ["abxy"], threshold=0.4) == 0.5
    assert similarity_above("abcd", "abxy") == 0.0  # MMLongBench-Doc leaves the threshold out
    assert similarity_above("Abcd", "abcd", 0.5) == 0.75  # this function distinguishes case


def test_anls_without_references() -> None:
    with pytest.raises(DataError, match="the sample has none"):
        anls("x", [])


@given(st.text(max_size=40), st.lists(st.text(max_size=40), min_size=1, max_size=3))
def test_score_is_0_or_above_the_threshold(answer: str, references: list[str]) -> None:
    score = anls(answer, references)
    assert score == 0 or 0.5 <= score <= 1
    assert anls(references[0], references) == float(references[0].strip() != "")
