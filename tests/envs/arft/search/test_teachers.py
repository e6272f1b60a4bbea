"""Tests the teacher of ArftSearch, which leaves out the last search."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arft.search.env import ArftSearch
from visenv.envs.arft.search.teachers import StopsEarly

ALWAYS = StopsEarly(rate=1.0)


def begun(hops: int, **options: Any) -> ArftSearch:
    env = gym.make("visenv/ArftSearch-v0", hops=[hops], **options).unwrapped
    assert isinstance(env, ArftSearch)
    env.reset(seed=0)
    return env


def played(env: ArftSearch) -> list[str]:
    """Play the teacher, and return its queries and its answer."""
    said: list[str] = []
    while env.log.answer is None:
        turn = ALWAYS.turn(env, np.random.default_rng(0))
        said += [call.arguments["query"] for call in turn.calls]
        env.step(env.grammar.compose(turn))
    return [*said, env.log.answer]


def test_teacher_answers_with_the_name_that_the_search_before_the_last_found() -> None:
    env = begun(2, preset="tiny")
    first, second = env.truth.queries  # the query for an owner is the name
    assert played(env) == [first, second]
    assert env.metrics()["accuracy"] == 0


def test_only_the_last_of_three_searches_is_left_out() -> None:
    env = begun(3)
    queries, name = env.truth.queries, " ".join(env.truth.names[2])
    assert played(env) == [*queries[:2], name]


def test_teacher_gives_up_without_a_search_if_one_is_needed() -> None:
    assert played(begun(1, preset="tiny")) == ["unknown"]
