"""Tests which texts give an item away and which do not, with examples by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.curation.judging import correctness_cue, is_too_simple, states, words
from visenv.errors import DataError


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("The sign is RED.", "red", True),
        ("The sign is reddish.", "red", False),
        ("a sacred place", "red", False),
        ("It shows the red sign, clearly", "a red sign", True),  # articles do not count
        ("It shows a sign that is red", "red sign", False),  # another order
        ("There are three dogs", "3", True),
        ("There are 13 dogs", "3", False),
        ("There are 3.5 l", "3", False),
        ("There are 3.0 l", "three", True),
        ("It cost $1,234.50.", "1234.5", True),
        ("1,23", "123", False),  # no group of three digits
        ("It rose to 12.50 %", "12.5%", True),
        ("John's car", "John", True),
        ("He saw “New York”!", "new york", True),
        ("ＲＥＤ ３", "red 3", True),  # full width
        ("straße", "STRASSE", True),
        ("first b, then a thing", "['a thing', 'b']", True),  # a list: each item, in any order
        ("first b", "['a thing', 'b']", False),
        ("[brackets", "[brackets", True),  # not a list
        ("A4 paper", "4", False),
        ("room 101", "one hundred one", False),  # numbers in words are known up to twenty
    ],
)
def test_states_finds_an_answer_in_a_text(text: str, answer: str, expected: bool) -> None:
    assert states(text, answer) is expected


@pytest.mark.parametrize("answer", ["", "?!", "the", "A", "[]", "['', 'an']"])
def test_answer_without_a_word_cannot_be_looked_for(answer: str) -> None:
    with pytest.raises(DataError, match="no word to search for"):
        states("the text", answer)


@pytest.mark.parametrize(
    "answer", ["Yes", "no.", "  TRUE", "False", "N", "A", "Not answerable", "unknown", "?"]
)
def test_answers_that_could_be_guessed(answer: str) -> None:
    assert is_too_simple(answer)


@pytest.mark.parametrize(
    "answer", ["north", "3", "red", "B", "yes, two dogs", "no entry", "['no']x"]
)
def test_answers_that_are_none_of_those(answer: str) -> None:
    assert not is_too_simple(answer)


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("The correct answer is 7.", "correct"),
        ("This is incorrectly read", "incorrectly"),
        ("a plausible but wrong reading", "plausible"),
        ("As the given solution says, 7.", "given solution"),
        ("Unlike response 2, …", "response 2"),
        ("the Ground Truth is 7", "Ground Truth"),
        ("hallucinated details", "hallucinated"),
        ("a misleading shadow", "misleading"),
        ("a red car on the right", None),
        ("the corrector's desk", None),
        ("The answer is 7.", None),
        ("rights and wrongs", None),
    ],
)
def test_talk_of_correctness(text: str, cue: str | None) -> None:
    assert correctness_cue(text) == cue


def test_words_of_the_question_are_no_cue() -> None:
    text = "The sign reads WRONG WAY; the correct turn is left."
    assert correctness_cue(text, "What does the wrong-way sign say?") == "correct"
    assert correctness_cue("It reads WRONG WAY.", "What is written?", "wrong way") is None


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_text_states_whatever_it_holds_between_blanks(before: str, answer: str, after: str) -> None:
    if words(answer).strip() and not answer.strip().startswith("["):
        assert states(f"{before} {answer} {after}", answer)


@given(st.text(max_size=80))
def test_words_of_words_are_the_same(text: str) -> None:
    once = words(text)
    assert words(once) == once
