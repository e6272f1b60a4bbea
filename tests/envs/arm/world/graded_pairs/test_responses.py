"""Tests that the pattern of statements does not reveal which of the responses is the best."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from visenv.envs.arm.world.graded_pairs.responses import Flaws, best_of, draw_patterns, flaws


def test_flaws_by_hand() -> None:
    truth = (True, False, True)
    assert flaws((True, False, True), truth) == Flaws(0, 0)
    assert flaws((True, None, True), truth) == Flaws(0, 1)
    assert flaws((False, None, True), truth) == Flaws(1, 1)
    assert flaws((False, True, False), truth) == Flaws(3, 0)


def test_statements_that_are_wrong_count_before_omitted_facts() -> None:
    assert best_of([Flaws(1, 0), Flaws(0, 2)]) == 1
    assert best_of([Flaws(1, 0), Flaws(1, 1), Flaws(2, 0)]) == 0
    assert best_of([Flaws(1, 0), Flaws(1, 0)]) is None


@pytest.mark.parametrize(("facts", "responses"), [(2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (3, 4)])
def test_best_response_is_at_the_position_of_the_verdict(facts: int, responses: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        drawn = draw_patterns(rng, facts, responses)
        assert len(drawn.patterns) == responses
        assert all(len(each) == facts and set(each) != {None} for each in drawn.patterns)
        assert best_of([flaws(each, drawn.truth) for each in drawn.patterns]) == drawn.best


def test_responses_are_the_best_equally_often() -> None:
    """Check 6,000 draws: for every pair of patterns within 4 standard deviations of a half."""
    rng = np.random.default_rng(0)
    won: defaultdict[object, Counter[int]] = defaultdict(Counter)
    for _ in range(6000):
        drawn = draw_patterns(rng, 2, 2)
        won[drawn.patterns][drawn.best] += 1
    assert len(won) > 10
    for counts in won.values():
        times = counts.total()
        assert abs(counts[0] - times / 2) <= 4 * (times / 4) ** 0.5
