"""Tests that a policy that searches and then guesses gains nothing, with values worked by hand."""

from __future__ import annotations

import pytest

from tests.reward_terms import unweighted
from visenv.envs.arft.search.ground_truth import SearchTruth
from visenv.envs.arft.search.make import make_search
from visenv.envs.arft.search.rewards import StepRule, search_terms
from visenv.envs.arft.search.similarity import open_similarity
from visenv.errors import ConfigurationError
from visenv.grammar.tags import TagGrammar
from visenv.types import Answered, EventLog, Sample, ToolCalled, TurnTaken

OPTIONS = ("1868", "1886", "1921", "1951")
SAMPLE = Sample(
    "s", "When?", (), ("1951",), "", SearchTruth(queries=("author of x", "birth of y"),
                                                 options=OPTIONS)
)  # fmt: skip


def log_of(queries: list[str], answer: str | None) -> EventLog:
    log = EventLog()
    for turn, query in enumerate(queries):
        text = f"<think>so</think><search>{query}</search>"
        log += [
            TurnTaken(turn, text, "so"),
            ToolCalled(turn, "search", {"query": query}, True, "", (), {"query": query}),
        ]
    if answer is not None:
        turn = len(queries)
        text = f"<think>so</think><answer>{answer}</answer>"
        log += [TurnTaken(turn, text, "so"), Answered(turn, answer)]
    return log


def paid(queries: list[str], answer: str | None, rule: StepRule = "answered") -> float:
    grammar = TagGrammar(("search",))
    terms = search_terms(grammar, open_similarity("words"), "f1", rule)
    log = log_of(queries, answer)
    return sum(each.weight * unweighted(each, log, SAMPLE) for each in terms)


QUERIES = [*SAMPLE.truth_as(SearchTruth).queries]


def test_searches_count_fully_with_an_exact_answer() -> None:
    # Two searches weigh 1/5 each and the answer 3/5, for accuracy and for form.
    assert paid(QUERIES, "1951") == pytest.approx(2)
    assert paid(QUERIES[:1], "1951") == pytest.approx(2 * (1 + 3) / 5)
    assert paid(QUERIES, None) == 0
    assert paid(QUERIES, None, "each") == pytest.approx(2 * 2 / 5)


def test_answer_that_is_wrong_costs_what_a_lucky_guess_gains() -> None:
    assert paid([], "1868") == pytest.approx(3 / 5)  # the form of the answer
    # 4/5 for both searches, times -1/3
    assert paid(QUERIES, "1868") == pytest.approx(3 / 5 - 4 / 15)
    assert paid(QUERIES, "1868", "each") == pytest.approx(3 / 5 + 4 / 5)
    for queries in ([], QUERIES[:1], QUERIES):
        mean = sum(paid(queries, answer) for answer in OPTIONS) / 4
        assert mean == pytest.approx(sum(paid([], answer) for answer in OPTIONS) / 4)


def test_rule_needs_procedural_questions() -> None:
    with pytest.raises(ConfigurationError, match="procedural"):
        make_search(compat="arft", step_rule="answered")
