"""Tests the choice of an option by an answer, and the letters that the public code finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.rewards.choice import choice_score, chosen_letter
from visenv.rewards.vqa import LONGEST_ANSWER

OPTIONS = ["red", "dark red", "blue", "A green one"]


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("A", "A"),
        ("(a)", "A"),
        ("B.", "B"),
        ("a?", None),
        ("**C**", "C"),
        (" d \n", "D"),
        ("red", "A"),
        ("Dark red.", "B"),
        ("a green one", "D"),
        ("B) dark red", "B"),
        ("(C) blue", "C"),
        ("C. It is not red.", "C"),
        ("The answer is A", "A"),
        ("The answer is C because it is blue", "C"),
        ("the correct answer is (C) blue", "C"),
        ("answer: b", "B"),
        ("Answer A is wrong; the answer is B", "B"),
        ("Option A", "A"),
        ("I think D", "D"),
        ("It must be [B], surely", "B"),
        ("A is right", "A"),
        ("A red car", "A"),  # "A" is an article; the text of the option decides
        ("A blue car", "C"),
        ("The answer is a blue car", "C"),
        ("it looks dark red to me", "B"),  # contains "red" too, but only inside "dark red"
        ("A or B", None),
        ("It is not (A)", None),
        ("It isn't (A)", None),
        ("not A but B", "B"),
        ("The answer is not option C; it is D", "D"),
        ("Answer: A/B", None),
        ("Answer: A or B", None),
        ("Answer: A, B", None),
        ("Answer: A, because it is so", "A"),
        ("It is not blue", None),
        ("not dark red but blue", "C"),
        ("red or blue", None),
        ("(A) or (B)", None),
        ("E", None),
        ("infrared", None),  # not a whole word
        ("green", None),
        ("", None),
        ("?", None),
    ],
)
def test_chosen_letter(answer: str, letter: str | None) -> None:
    assert chosen_letter(answer, OPTIONS) == letter


def test_score() -> None:
    assert choice_score("The answer is A", "A", OPTIONS) == 1.0
    assert choice_score("The answer is A", "B", OPTIONS) == 0.0
    assert choice_score("no idea", "B", OPTIONS) == 0.0


@pytest.mark.parametrize(
    ("answer", "score"),
    [("A", 1.0), ("(A) red", 1.0), ("The answer is A", 0.0), ("a", 0.0), ("red", 0.0)],
)
def test_public_codes_letters(answer: str, score: float) -> None:
    # The public code joins all capitals of the answer: "TA" for "The answer is A".
    assert choice_score(answer, "A", OPTIONS, compat="r1_vlm") == score


def test_options_of_the_same_text_pick_nothing() -> None:
    assert chosen_letter("red", ["red", "Red"]) is None


@given(st.text(), st.lists(st.text(), max_size=30))
def test_text_of_any_kind_picks_an_option_or_nothing(answer: str, options: list[str]) -> None:
    letter = chosen_letter(answer, options)
    assert letter is None or "ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(letter) < len(options)


@pytest.mark.parametrize("piece", ["A", "(A", "answer is ", "answer: ((((", "red ", " "])
def test_endless_answer_picks_nothing(piece: str) -> None:
    endless = "." + piece * (2 * LONGEST_ANSWER) + "."
    assert chosen_letter(endless, OPTIONS) is None
    assert choice_score("A" + "b" * LONGEST_ANSWER, "A", OPTIONS, compat="r1_vlm") == 0.0
