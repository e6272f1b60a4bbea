"""Tests exact match and F1: values by hand, and golden values of the public code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arft.rewards.qa import exact_match, normalized, token_f1, tokens
from visenv.errors import DataError, UnknownNameError
from visenv.rewards.vqa import LONGEST_ANSWER


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Answer, is: A cat!", "answer is cat"),
        ("an AN the THE a", ""),
        ("then anna", "then anna"),  # articles are only removed as whole words
        ("3.5 %", "35"),  # punctuation is deleted, not replaced
        ("发票，号码：《A》", "发票号码a"),
        ("\t\n", ""),
    ],
)
def test_normalized(text: str, expected: str) -> None:
    assert normalized(text) == expected


def test_chinese_is_cut_into_characters_and_other_words_are_not() -> None:
    assert tokens("软件工程 v2 beta") == ["软", "件", "工", "程", "v2", "beta"]
    assert tokens("软件ABC工程") == ["软", "件", "abc", "工", "程"]


@pytest.mark.parametrize(
    ("answer", "reference", "exact", "f1", "published"),
    [
        # Golden values of the public code: reference/papers.md.
        ("new york new york", "new york new york", 1, 1.0, 0.5),  # 2 of 4 and 2 of 4
        ("the the cat", "cat", 1, 1.0, 1.0),
        # without articles "b b" against "b": 1 of 2 and 1 of 1, 2·1/3
        ("a b a b", "a b", 0, 2 / 3, 2 / 3),
        # red once and blue once are common: 2·2/6; as sets {red, blue}, 2·2/6
        ("red red blue", "red blue blue", 0, 2 / 3, 2 / 3),
        # nothing in common
        ("cat", "dog", 0, 0.0, 0.0),
        # 2 of 3 given, 2 of 2 wanted: 2·2/5
        ("very dark green", "dark green", 0, 0.8, 0.8),
        # characters: 3 of 4 given, 3 of 5 wanted, 2·3/9
        ("软件工程", "软件与工业", 0, 2 * 3 / 9, 2 * 3 / 9),
        # tokens 哆 爱 id 网 咖 and 5 characters: 2·2/10; the public code counts i, d and the line
        # feeds too: 2·2 / (5 + 8)
        ("贡献网咖啡", "哆爱\niD\n网咖", 0, 0.4, 4 / 13),
        # no word and no character in common
        ("x y", "网", 0, 0.0, 0.0),
        ("x 网", "x网 ", 1, 1.0, 1.0),
        # both are empty after normalization
        ("the", "a", 0, 0.0, 0.0),
        ("A", "a", 1, 1.0, 0.0),
        ("", "cat", 0, 0.0, 0.0),
    ],
)
def test_scores_by_hand(
    answer: str, reference: str, exact: int, f1: float, published: float
) -> None:
    assert exact_match(answer, [reference]) == exact
    assert token_f1(answer, [reference]) == pytest.approx(f1)
    assert token_f1(answer, [reference], "arft") == pytest.approx(published)


def test_closest_reference_counts() -> None:
    references = ["14 March 2017", "March 14th, 2017", "TUE, March 14, 2017"]
    assert exact_match("march 14th 2017", references) == 1
    # "March 14 2017" has all of its words in common with the third, 2·3/7, and the first, 2·3/6
    assert token_f1("March 14, 2017", references) == 1.0
    assert exact_match("March 14, 2017", references) == 0  # the order differs


WORDS = st.lists(st.sampled_from(["red", "blue", "green", "ring", "2"]), max_size=6).map(" ".join)


@given(WORDS.filter(bool), WORDS)
def test_f1_is_symmetric_bounded_and_1_exactly_for_the_same_words(one: str, other: str) -> None:
    score = token_f1(one, [other])
    assert score == token_f1(other, [one])
    assert 0.0 <= score <= 1.0
    assert (score == 1.0) == (sorted(one.split()) == sorted(other.split()))
    assert exact_match(one, [other]) <= score
    assert token_f1(one, [other], "arft") <= score  # the public code counts a repeated word once


@given(st.text(), st.text())
def test_answers_of_any_text_are_scored(answer: str, reference: str) -> None:
    assert 0.0 <= token_f1(answer, [reference]) <= 1.0
    equal = float(answer.strip() != "")  # a blank answer equals nothing
    assert token_f1(answer, [answer]) == exact_match(answer, [answer]) == equal


def test_novel_answers_nothing() -> None:
    novel = "cat " * LONGEST_ANSWER
    assert token_f1(novel, [novel]) == exact_match(novel, [novel]) == 0.0


def test_unknown_truth_is_no_wrong_answer() -> None:
    for score in (exact_match, token_f1):
        with pytest.raises(DataError):
            score("cat", [])
    with pytest.raises(UnknownNameError):
        token_f1("cat", ["cat"], "arm")  # type: ignore[arg-type]


def test_public_code_keeps_curly_quotes() -> None:
    assert exact_match("“Lost”", ["Lost"]) == 1
    assert exact_match("“Lost”", ["Lost"], "arft") == 0
    assert exact_match('The "Lost"!', ["lost"], "arft") == 1
    assert exact_match("“北京”。", ["北京"], "arft") == 1
