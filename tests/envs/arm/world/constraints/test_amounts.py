from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.world.constraints.amounts import OPEN, Amount, draw_amount, draw_count

seeds = st.integers(0, 2**32)


@given(seeds, st.integers(1, 20), st.integers(0, 20))
def test_words_state_the_bounds(seed: int, lowest: int, more: int) -> None:
    amount = draw_amount(np.random.default_rng(seed), lowest, lowest + more)
    told = [int(number) for number in re.findall(r"\d+", amount.words)]
    bounds = {amount.lower, amount.upper} - {0, OPEN}
    assert set(told) == bounds
    assert all(lowest <= number <= lowest + more for number in told)
    assert ("at most" in amount.words or "more than" in amount.words) is (amount.lower == 0)
    least = "at least" in amount.words or "fewer than" in amount.words or "or more" in amount.words
    assert least is (amount.upper == OPEN)


@given(seeds, st.integers(0, 3), st.integers(1, 9), st.integers(0, 9), st.booleans())
def test_count_keeps_or_misses(seed: int, least: int, above: int, more: int, keeps: bool) -> None:
    rng = np.random.default_rng(seed)
    amount = draw_amount(rng, least + above, least + above + more)
    number, case = draw_count(rng, amount, keeps, least=least)
    assert number >= least
    assert (amount.lower <= number <= amount.upper) is keeps
    assert (case == "kept") is keeps
    missed_by = max(amount.lower - number, number - amount.upper)
    assert ("one too" in case) is (missed_by == 1)
    assert ("few" in case) is (number < amount.lower)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (Amount(1, 1, "exactly 1"), "exactly 1 word"),
        (Amount(2, 2, "2"), "2 words"),
        (Amount(1, 2, "1 to 2"), "1 to 2 words"),
        (Amount(0, 1, "at most 1"), "at most 1 word"),
        (Amount(1, OPEN, "at least 1"), "at least 1 word"),
        (Amount(3, OPEN, "3 or more"), "3 or more words"),
        (Amount(1, OPEN, "1 or more"), "1 or more words"),
    ],
)
def test_singular_and_plural(amount: Amount, expected: str) -> None:
    assert amount.of("word") == expected
