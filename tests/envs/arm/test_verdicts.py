"""Tests verdicts: writing, reading, contradictions, and reading as in the public code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.environments import few
from visenv.envs.arm.verdicts import read_verdict, verdict_of_rating, write_verdict

NUMBERS = st.integers(2, 9).flatmap(
    lambda count: st.tuples(st.just(count), st.integers(1, count).map(str))
)


@given(NUMBERS | st.tuples(st.just(1), st.sampled_from(["True", "False"])))
def test_verdicts_as_written_are_read(case: tuple[int, str]) -> None:
    count, verdict = case
    assert read_verdict(write_verdict(verdict), count) == verdict


@given(st.text(), st.integers(1, 9))
def test_verdicts_of_any_text_are_read(text: str, count: int) -> None:
    verdicts = {"True", "False"} if count == 1 else set(map(str, range(1, count + 1)))
    assert read_verdict(text, count) in {None, *verdicts}
    assert isinstance(read_verdict(text, count, "arm"), str)


@pytest.mark.parametrize(
    ("answer", "count", "verdict"),
    [
        ("Overall Judgment: True", 1, "True"),
        ("true", 1, "True"),
        ("**Overall Judgement:** False.", 1, "False"),
        ("Overall Judgment: **False**", 1, "False"),
        ("It looks false, yet: Overall Judgment: True", 1, "True"),
        ("True or False", 1, None),
        ("Overall Judgment: True or False", 1, None),
        ("Overall Judgment: True (or False)", 1, None),
        ("Overall Judgment: True/False", 1, None),
        ("Not true", 1, "False"),
        ("Overall Judgment: Not true", 1, "False"),
        ("It isn't entirely true", 1, "False"),
        ("It is not false", 1, "True"),
        ("Overall Judgment: True. Nothing in it is false.", 1, "True"),
        ("$\\boxed{False}$", 1, "False"),
        ("Overall Judgment: True. Overall Judgment: False", 1, None),
        ("", 1, None),
        ("1", 1, None),
        ("untrue", 1, None),
        ("Overall Judgment:" + " " * 200_000 + "?", 1, None),  # read in linear time
        ("Overall Judgment: Answer 2 is better", 2, "2"),
        ("Answer 1 is slightly better than Answer 2.", 2, "1"),
        ("Response 3 is the best", 4, "3"),
        ("Answer 4 is correct", 4, "4"),
        ("Overall Judgment: 2", 2, "2"),
        ("Answer 2", 2, "2"),
        ("2.", 2, "2"),
        ("Answer 3 is better", 2, None),
        ("Answer 0 is better", 2, None),
        ("Answer 1 is better. No: Answer 2 is better.", 2, None),
        ("Answer 2 is not better", 2, None),
        ("\\boxed{2}", 2, "2"),
        ("Overall Judgment: $\\boxed{Answer 1}$", 2, "1"),
        ("Answer 2 is significantly better", 2, "2"),
        ("resp_1 is better", 2, "1"),
        ("resp_2", 2, "2"),
        ("It is false that Answer 1 is better", 2, None),
        ("It is not the case that Answer 1 is better", 2, None),
        ("Answer 1 and answer 2 is better", 2, None),
        ("Compared with Answer 1, Answer 2 is better", 2, "2"),
        ("Say whether Answer 1 is better", 2, None),
        ("Answer 1 is worse and Answer 2 is better", 2, "2"),
        ("neither", 2, None),
        ("True", 2, None),
    ],
)
def test_verdicts(answer: str, count: int, verdict: str | None) -> None:
    assert read_verdict(answer, count) == verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Answer 1 is better. No: Answer 2 is preferred.", "2"),  # the last verdict counts
        ("Answer 3 is better", "Answer 3 is better"),  # only 1 and 2 are read
        ("Answer 1 is the best", "Answer 1 is the best"),
        ("2", "2"),
        ("answer2isbetter", "2"),
        ("Overall Judgment: true", "True"),
        ("FALSE", "False"),
    ],
)
def test_verdicts_as_the_public_code_reads_them(answer: str, verdict: str) -> None:
    assert read_verdict(answer, 4, "arm").lower() == verdict.lower()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rating", "verdict"),
    [(1, "False"), (5, "False"), (6, "True"), (10, "True"), (0, None), (11, None), (-1, None)],
)
def test_rating_in_the_upper_half_is_a_verdict_of_right(rating: int, verdict: str | None) -> None:
    assert verdict_of_rating(rating, [1, 10]) == verdict


@pytest.mark.parametrize("count", few([10_000, 100_000], 1))
def test_read_verdict_reads_a_long_text(count: int) -> None:
    assert read_verdict("Answer 1 is " * count, 2) is None
    assert read_verdict("true " * 2 * count, 1) == "True"
