"""Tests the teacher of ArftSearch, whose queries leave out or mistake a word."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arft.search.env import ArftSearch, ImpreciseQuery
from visenv.envs.arft.search.imprecise import imprecise_query
from visenv.envs.arft.tiny_images import COLORS
from visenv.errors import ConfigurationError
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


def queries(env: ArftSearch, mistaken: float) -> list[list[str]]:
    """Return the words of the first query in 40 episodes of the teacher."""
    teacher = ImpreciseQuery(mistaken=mistaken)
    turns = [teacher.turn(env, np.random.default_rng(seed)) for seed in range(40)]
    assert all(env.truth.queries[0] in (turn.thought or "") for turn in turns)
    return [turn.calls[0].arguments["query"].split() for turn in turns]


def test_query_leaves_out_a_random_word_of_the_name() -> None:
    env = begun(1, preset="tiny")
    assert {query for (query,) in queries(env, 0.0)} == set(env.truth.queries[0].split())


def test_query_mistakes_a_random_word_of_the_name() -> None:
    env = begun(1, preset="tiny")
    color, shape = env.truth.queries[0].split()
    found = queries(env, 1.0)
    assert {shape for _, shape in found} == {"square", "circle", "triangle"}
    wrong_colors = {query[0] for query in found if query[0] != color}
    assert len(wrong_colors) >= 3
    assert wrong_colors < set(COLORS)
    assert all((query[0] != color) != (query[1] != shape) for query in found)


def test_queries_mistake_a_word_in_half_of_the_episodes() -> None:
    lengths = [len(query) for query in queries(begun(1, preset="tiny"), 0.5)]
    assert set(lengths) == {1, 2}
    assert 10 <= lengths.count(2) <= 30  # 20 of 40, and more than 3 standard deviations


@pytest.mark.parametrize("mistaken", [0.0, 1.0])
def test_words_that_are_not_in_the_name_are_kept(mistaken: float) -> None:
    env = begun(2)
    author, of, *title = env.truth.queries[0].split()
    assert (author, of) == ("author", "of")
    assert "of" in title  # also a word of the name
    found = queries(env, mistaken)
    assert all(query[:2] == ["author", "of"] for query in found)
    same_length = [query[2:] for query in found if len(query) == 2 + len(title)]
    assert all(sum(map(str.__ne__, query, title)) == 1 for query in same_length)
    assert bool(same_length) == bool(mistaken)
    assert {len(query) - len(title) for query in found} <= {1, 2}  # "of" is in all such titles


def test_description_loses_a_word_even_if_words_are_mistaken() -> None:
    env = begun(1, seed=8)
    words, name = env.truth.queries[0].split(), env.truth.names[0]
    assert [*name] != env.truth.articles[0].split()
    for query in queries(env, 1.0):
        (place,) = [k for k in range(len(words)) if words[:k] + words[k + 1 :] == query]
        assert words[place] in name


@pytest.mark.parametrize("options", [{}, {"preset": "tiny"}], ids=["default", "tiny"])
def test_imprecise_query_never_contains_a_whole_name_of_several_words(
    options: dict[str, Any],
) -> None:
    env = gym.make("visenv/ArftSearch-v0", **options).unwrapped
    assert isinstance(env, ArftSearch)
    for seed in range(60):
        env.reset(seed=seed)
        for number, name in enumerate(env.truth.names):
            found = imprecise_query(env.truth, number, 0.5, np.random.default_rng(seed))
            is_one_word = len(name) == 1
            assert (" ".join(name) in found) == is_one_word
            assert (found == env.truth.queries[number]) == is_one_word


@pytest.mark.parametrize("mistaken", [-0.1, 1.1, float("nan")])
def test_share_of_mistaken_words_is_from_0_to_1(mistaken: float) -> None:
    with pytest.raises(ConfigurationError, match="mistaken must be from 0 to 1"):
        ImpreciseQuery(mistaken=mistaken)


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
