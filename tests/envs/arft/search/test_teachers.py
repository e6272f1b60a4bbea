"""Tests the teacher of ArftSearch, whose queries leave out a word."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arft.search.env import ArftSearch, ImpreciseQuery
from visenv.grammar import ParsedTurn, ToolCall


def begun(hops: int, seed: int = 0, **options: Any) -> ArftSearch:
    env = gym.make("visenv/ArftSearch-v0", hops=[hops], **options).unwrapped
    assert isinstance(env, ArftSearch)
    env.reset(seed=seed)
    return env


def played(env: ArftSearch, seed: int = 0) -> list[str]:
    """Play the teacher, and return its queries and its answer."""
    said: list[str] = []
    while env.log.answer is None:
        turn = ImpreciseQuery().turn(env, np.random.default_rng(seed))
        said += [call.arguments["query"] for call in turn.calls]
        env.step(env.grammar.compose(turn))
    return [*said, env.log.answer]


def search(env: ArftSearch, query: str) -> None:
    env.step(env.grammar.compose(ParsedTurn(" ", (ToolCall("search", {"query": query}),))))


def test_query_leaves_out_a_random_word_of_the_name() -> None:
    env = begun(1, preset="tiny")
    turns = [ImpreciseQuery().turn(env, np.random.default_rng(seed)) for seed in range(20)]
    (query,) = env.truth.queries
    assert {turn.calls[0].arguments["query"] for turn in turns} == set(query.split())
    assert {turn.thought for turn in turns} == {f" {query} "}


def test_words_that_are_not_in_the_name_are_kept() -> None:
    env = begun(2)
    first, _ = env.truth.queries
    assert first.split()[:2] == ["author", "of"]
    turn = ImpreciseQuery().turn(env, np.random.default_rng(0))
    query = turn.calls[0].arguments["query"]
    assert query.startswith("author of ")
    assert len(query.split()) == len(first.split()) - 1


@pytest.mark.parametrize("lucky", [True, False])
def test_teacher_goes_on_only_after_the_right_article(lucky: bool) -> None:
    env = begun(2, preset="tiny")
    first, second = env.truth.queries
    search(env, first if lucky else second)
    # A name of one word is searched for as it is.
    assert played(env) == ([second, *env.sample.answers] if lucky else ["unknown"])


def test_success_of_an_imprecise_query_is_luck() -> None:
    right = [
        played(env, seed)[-1] == env.sample.answers[0]
        for seed in range(20)
        for env in [begun(1, seed, preset="tiny")]
    ]
    assert 4 <= sum(right) <= 14
