"""Tests claims: levels, lists, corrections; hostile texts; fake mentions."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.rewards.choice import PHRASES, chosen_letter, chosen_letters
from visenv.text.claims import claimed_label, claimed_list
from visenv.text.mentions import mention, without_mentions

OPTIONS = ["red", "green", "blue", "yellow"]
A, B, NONE = mention(0), mention(1), mention(None)
PARTS = (
    "A|B|(C)|not|no,|is|wrong|the answer is|or|and|red|blue|.|?|wait,|maybe|except|**|\\boxed{|}"
    "|because|but|if|is right|:"
)
WORDS = st.sampled_from(PARTS.split("|"))


def marked(text: str) -> str:
    """Return a text with capital letters as mentions."""
    return re.sub(r"\b[A-D]\b", lambda found: mention("ABCD".index(found[0])), text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A is right", 0),
        ("It is B.", 1),
        ("It is not B, it is A", 0),
        ("A. Or B?", 0),
        ("A or B", None),
        ("the answer is A. No, B.", 1),
        ("A beats B", 0),
        ("B is wrong", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_claimed_label(text: str, label: int | None) -> None:
    assert claimed_label(marked(text), PHRASES) == label


def test_candidate_that_does_not_exist_is_no_label() -> None:
    assert claimed_label(f"the answer is {NONE}", PHRASES) is None
    assert claimed_label(f"{A} or, rather, {NONE}", PHRASES) is None


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("A and C", (0, 2)),
        ("B, A", (0, 1)),
        ("A or C", ()),
        ("not A and B", ()),
        ("C", (2,)),
        ("", ()),
    ],
)
def test_claimed_list(text: str, labels: tuple[int, ...]) -> None:
    assert claimed_list(marked(text), PHRASES) == labels


@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_claims_of_any_sentence_are_read(text: str) -> None:
    assert chosen_letter(text, OPTIONS) in {None, "A", "B", "C", "D"}
    assert set(chosen_letters(text)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@given(st.lists(WORDS, max_size=8).map(" ".join), st.sampled_from("ABCD"))
def test_correction_at_the_end_decides(text: str, letter: str) -> None:
    assert chosen_letter(f"{text}. Wait, no. The answer is {letter}.", OPTIONS) in {None, letter}


@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"))
def test_denied_letter_is_never_chosen(letter: str, other: str) -> None:
    for text in (f"not {letter}", f"The answer is not {letter}.", f"{letter} is wrong"):
        assert chosen_letter(text, OPTIONS) is None
        chosen = chosen_letter(f"{text}. It is {other}.", OPTIONS)
        assert chosen == (other if other != letter else chosen)


def test_text_cannot_fake_a_mention() -> None:
    assert without_mentions(f"x{B}y") == "x\ufffdy"
    assert chosen_letter(f"the answer is {B}", OPTIONS) is None


PIECES = [
    "A", "(A", "answer is ", "answer: ((((", "red ", " ", "A, ", "A or ", "not ", "no, ", "wait, ",
    "but ", "\n", "A/", "{", "}", "\\boxed{", '{"answer": "', '{"answer": [', "<answer>", "- ",
    "some people ", "it is not, ", "the answer is A. ", "答案是A", "every of x y but ", "A) ", "é",
    "is wrong ", "?!", "if A ",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[: length - 2]
        start = time.process_time()
        chosen_letter(f".{text}.", OPTIONS)
        return time.process_time() - start

    # The least of several runs does not depend on other programs of the machine.
    short = min(seconds(2_500) for _ in range(5))
    # 4 times the text; 16 times would be quadratic.
    assert any(seconds(10_000) < 10 * short for _ in range(5))
