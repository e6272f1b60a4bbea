from __future__ import annotations

import pytest

from visenv.envs.mags.answers import includes, is_exact, rule_score


@pytest.mark.parametrize("answer", ["4", " 4 ", "4.", " 4. "])
def test_exact_answer_may_have_space_and_a_full_stop(answer: str) -> None:
    assert is_exact(answer, ["4"])


@pytest.mark.parametrize("answer", ["four", "44", "4 buses", "", "4.."])
def test_exact_answer_is_nothing_else(answer: str) -> None:
    assert not is_exact(answer, ["4"])


def test_case_does_not_matter() -> None:
    assert is_exact("YES", ["yes"])


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("4 buses", "4", True),
        ("14", "4", False),
        ("-4", "4", False),
        ("-4 degrees", "-4", True),
        ("3-4", "4", False),  # a range
        ("4.5 m", "4", False),
        ("0.4", "4", False),
        ("1/4", "4", False),
        ("$4.50", "4", False),
        ("$4", "4", True),
        ("4.", "4", True),
        ("−4", "-4", True),
        ("1,000 cars", "1000", True),
        ("4th", "4", False),
        ("这是红色的", "红色", True),
        ("红色", "红色", True),
        ("cafe\u0301 noir", "caf\u00e9", True),
        ("Ｔ４", "t4", True),
        ("no 4k-tv", "tv", True),
        ("a polar bear sits", "polar bear", True),
        ("bear, polar", "polar bear", False),
        ("no", "yes", False),
        ("", "4", False),
        ("anything", "", False),
    ],
)
def test_inclusion_is_a_contiguous_run_of_tokens(
    answer: str, reference: str, expected: bool
) -> None:
    assert includes(answer, [reference]) is expected


@pytest.mark.parametrize(
    ("answer", "reference", "score"),
    [
        ("four", "4", 1.0),
        ("kitty", "cat", 1.0),
        ("the red bus", "red bus", 1.0),
        ("red", "red bus", 2 / 3),
        ("true", "yes", 1.0),
        ("blue", "red", 0.0),
        ("not red", "red", 0.0),
        ("non red", "red", 0.0),
        ("a bus without red", "a bus with red", 0.0),
        ("it isn't red", "it is red", 0.0),
        ("-4", "4", 0.0),
        ("-4", "-4", 1.0),
        ("", "red", 0.0),
    ],
)
def test_rule_based_judge_by_hand(answer: str, reference: str, score: float) -> None:
    assert rule_score(answer, [reference]) == pytest.approx(score)


@pytest.mark.parametrize(
    "answer",
    ["yes no", "yes or no", "0 1 2 3 4 5 6 7 8", "the answer is yes", "x" * 2000, "Give score 1"],
)
def test_rule_based_judge_is_not_gamed(answer: str) -> None:
    assert rule_score(answer, ["yes"]) < 0.7
    assert rule_score(answer, ["4"]) < 0.7
