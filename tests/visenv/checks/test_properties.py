"""Tests properties of the checks: `strict` on constructed texts, all dialects on any text."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.checks import CHECKS, DIALECTS, Dialect, check
from visenv.checks.keywords import mentions
from visenv.checks.substrings import begins, ends
from visenv.checks.text import clean, paragraphs, sentences, word_count
from visenv.tools.base import Arguments

PARAGRAPHS = "check_whether_response_paragraph_number_in_range"
SENTENCES = "check_whether_response_sentence_number_in_range"
WORDS = "check_whether_response_word_count_in_range"
NOT = "check_whether_whole_response_not_contain_certain_substring"
TOTAL = "check_whether_total_keyword_in_list_mentioned_in_range"
PERCENTAGES = "check_percentage_number_precision_in_response"
NUMBERS = "check_number_precision_in_response"
NO_NUMBER = "check_whether_has_no_arabic_number_in_response"

words = st.text(string.ascii_lowercase, min_size=2, max_size=9)
blanks = st.sampled_from([" ", "  ", "\n", "\t", " \n ", "\u2003", " - ", " — "])
anything = st.text() | st.text('aA1.,%#!?-…\n \t"*').map(str)


def between(number: int) -> dict[str, int]:
    return {"lower_bound": number, "upper_bound": number}


@given(st.lists(st.tuples(words, blanks), min_size=1, max_size=30))
def test_words_are_counted_whatever_is_between_them(parts: list[tuple[str, str]]) -> None:
    text = "".join(word + blank for word, blank in parts)
    assert check(WORDS, text, between(len(parts)))
    assert not check(WORDS, text, between(len(parts) + 1))


@given(st.lists(st.lists(words, min_size=3, max_size=6), min_size=1, max_size=8), st.data())
def test_paragraphs_and_sentences_are_counted(made: list[list[str]], data: st.DataObject) -> None:
    ends_with = st.sampled_from([".", "!", "?", "...", '."', ".)"])
    # No abbreviation ends in "ish", so each sentence ends here.
    each = [f"It was {' '.join(some)}ish{data.draw(ends_with)}" for some in made]
    gaps = [data.draw(st.sampled_from([" ", "\n\n", "\n \t\n\n"])) for _ in each]
    text = "".join(sentence + gap for sentence, gap in zip(each, gaps, strict=True))
    blocks = 1 + sum("\n" in gap for gap in gaps[:-1])
    assert check(PARAGRAPHS, text, between(blocks))
    assert check(SENTENCES, text, between(len(each)))


@pytest.mark.slow
@given(st.text(), st.text(min_size=1, max_size=20), st.text())
def test_substrings_are_found_in_any_case(before: str, substring: str, after: str) -> None:
    if substring.isascii():
        for written in (substring, substring.upper(), substring.swapcase()):
            assert not check(NOT, before + written + after, {"substring": substring})


affixes = st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()))
edges = st.text("\"'*_ .!…)(", max_size=6)


@given(edges, affixes, st.text())
def test_text_begins_with_what_it_begins_with(edge: str, affix: str, rest: str) -> None:
    assert begins(edge + affix + rest, affix)
    assert ends(rest + affix + edge, affix)


@given(words, words, edges)
def test_text_does_not_begin_with_its_second_word(first: str, second: str, edge: str) -> None:
    if not first.startswith(second):
        assert not begins(f"{edge}{first} {second}", second)
    if not second.endswith(first):
        assert not ends(f"{first} {second}{edge}", first)


@given(st.lists(st.sampled_from(["cat", "Cat", "cats", "#cat", "concat", "cat's", "C++", "c"])))
def test_mentions_by_construction(made: list[str]) -> None:
    text = " ".join(made).casefold()
    assert mentions(text, "cat") == sum(word in ("cat", "Cat", "#cat", "cat's") for word in made)
    assert mentions(text, "#cat") == made.count("#cat")
    assert mentions(text, "c++") == made.count("C++")


@given(
    st.lists(st.decimals(0, 99999, places=3), min_size=1, max_size=8),
    st.integers(0, 3),
    st.sampled_from(["", "%", " %"]),
)
def test_precision_by_construction(values: list[float], precision: int, sign: str) -> None:
    text = ", then ".join(f"about {value:,.{precision}f}{sign} of them" for value in values)
    name = PERCENTAGES if sign else NUMBERS
    for asked in range(5):
        assert check(name, text, {"precision": asked}) is (asked == precision)
        assert check(NUMBERS, text, {"precision": asked}) is (asked == precision)
    assert not check(NO_NUMBER, text, {})


@given(st.lists(words))
def test_text_without_a_digit_has_no_number(made: list[str]) -> None:
    assert check(NO_NUMBER, " ".join(made), {})


@given(anything)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(anything)
def test_parts_are_parts(text: str) -> None:
    assert len(paragraphs(text)) <= max(len(sentences(text)), 1)
    assert sum(map(word_count, paragraphs(text))) == word_count(clean(text))


EXAMPLES: dict[str, dict[str, Any]] = {
    "Bounds": {"lower_bound": 1, "upper_bound": 3},
    "Ranges": {"ranges": [[1, 1], [0, 2]]},
    "Substrings": {"substrings": ["a", "1."]},
    "Substring": {"substring": "a"},
    "Affix": {"substring": "#a."},
    "Keywords": {"keywords": ["a", "#A", "1.1"], "lower_bound_times": 0, "upper_bound_times": 2},
    "Precision": {"precision": 1},
    "NoArguments": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_checks_answer_for_any_text(name: str, dialect: Dialect) -> None:
    model: Arguments = CHECKS[name].arguments(**EXAMPLES[CHECKS[name].arguments.__name__])

    @given(anything)
    def answers(text: str) -> None:
        assert check(name, text, model, dialect) in (True, False)

    answers()
