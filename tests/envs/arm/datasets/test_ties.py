"""Tests the Ties score, with each part calculated by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.datasets.ties import RatedPrompt, TiesScore, ties_score
from visenv.errors import DataError


def test_ties_of_one_pair_by_hand() -> None:
    # Reference: right 9, wrong 4 and 6: gap 9 - 6 = 3 > 0, so ref = 1.
    # Tied: right 8 and 7, wrong 5: spread 8 - 7 = 1, gap 7 - 5 = 2 > 0, so tied = 1.
    # margin: 2 > 1 gives 1. hard: min(2, 3) = 2 > 1 gives 1. fine: tanh(2 / 1 - 1) = tanh(1).
    score = ties_score([RatedPrompt("ref:7", [9, 4, 6], 1), RatedPrompt("tied:7", [8, 7, 5], 2)])
    assert score == TiesScore(1.0, 1.0, 1.0, 1.0, math.tanh(1.0))
    # 0.3 + 0.3 + 0.2 + 0.2 + 0.01 x 0.761594 = 1.00761594
    assert score.total == pytest.approx(1.00761594, abs=1e-8)


def test_ties_of_two_pairs_by_hand() -> None:
    prompts = [
        # Gap 5 - 5 = 0 does not count as a win: ref 0.
        RatedPrompt("ref:1", [5, 5], 1),
        # Spread 9 - 6 = 3, gap 6 - 4 = 2: tied is 1, but the spread is larger than the gap.
        RatedPrompt("tied:1", [9, 6, 4], 2),
        # Gap 10 - 9 = 1: ref 1.
        RatedPrompt("ref:2", [10, 9, 1], 1),
        # Spread 8 - 8 = 0, gap 8 - 3 = 5.
        RatedPrompt("tied:2", [8, 8, 3, 2], 2),
    ]
    # ref = (0 + 1) / 2, tied = (1 + 1) / 2, margin: 2 > 3 no, 5 > 0 yes: 1/2,
    # hard: min(2, 0) > 3 no, min(5, 1) > 0 yes: 1/2,
    # fine: tanh(0 / 3 - 1) = -0.761594 and, with no spread, the sign of 1: mean 0.119203.
    score = ties_score(prompts)
    assert score[:4] == (0.5, 1.0, 0.5, 0.5)
    assert score.fine == pytest.approx(0.119203, abs=1e-6)
    # 0.15 + 0.3 + 0.1 + 0.1 + 0.00119203
    assert score.total == pytest.approx(0.65119203, abs=1e-8)
    assert ties_score(reversed(prompts)) == score


@pytest.mark.parametrize(
    ("wrong", "fine"),
    [(9, -1.0), (8, 0.0), (7, 1.0)],  # spread 0; gap 8 - wrong is -1, 0, 1
)
def test_ties_without_a_spread_have_the_sign_of_the_gap(wrong: int, fine: float) -> None:
    prompts = [RatedPrompt("ref:0", [10, 1], 1), RatedPrompt("tied:0", [8, 8, wrong], 2)]
    assert ties_score(prompts).fine == fine


def test_accuracies_count_prompts_that_come_once() -> None:
    prompts = [
        RatedPrompt("ref:0", [9, 1], 1),
        RatedPrompt("ref:1", [1, 9], 1),
        RatedPrompt("ref:2", [1, 9], 1),
        RatedPrompt("tied:0", [9, 8, 1], 2),
        RatedPrompt("tied:9", [1, 1, 9], 2),
    ]
    score = ties_score(prompts)
    assert score.ref == pytest.approx(1 / 3)
    assert score.tied == 0.5
    assert (score.margin, score.hard) == (1.0, 1.0)  # only of prompt 0


@pytest.mark.parametrize(
    ("prompts", "problem"),
    [
        ([RatedPrompt("ref:1", [5, 1], 1)], "no number occurs in both"),
        ([RatedPrompt("both:1", [5, 1], 1)], "must be ref:<n> or tied:<n>"),
        ([RatedPrompt("ref:one", [5, 1], 1)], "must be ref:<n> or tied:<n>"),
        ([RatedPrompt("ref:1", [5, 1], 1)] * 2, "ref:1 was rated twice"),
        ([RatedPrompt("ref:1", [5, 1], 2)], "2 right ones of 2"),
        ([RatedPrompt("ref:1", [5, 1], 0)], "0 right ones of 2"),
        ([RatedPrompt("ref:1", [], 1)], "1 right ones of 0"),
        ([RatedPrompt("tied:1", [5, 1], -1)], "-1 right ones of 2"),
    ],
)
def test_ties_that_cannot_be_scored_give_the_reason(
    prompts: list[RatedPrompt], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        ties_score(prompts)


_RATINGS = st.lists(st.integers(-1, 10), min_size=3, max_size=6)


@given(st.lists(st.tuples(_RATINGS, _RATINGS), min_size=1, max_size=3))
def test_score_keeps_its_range(pairs: list[tuple[list[int], list[int]]]) -> None:
    prompts = [
        prompt
        for number, (ref, tied) in enumerate(pairs)
        for prompt in (RatedPrompt(f"ref:{number}", ref, 1), RatedPrompt(f"tied:{number}", tied, 2))
    ]
    score = ties_score(prompts)
    assert -0.01 <= score.total <= 1.01
    assert score.hard <= score.margin
