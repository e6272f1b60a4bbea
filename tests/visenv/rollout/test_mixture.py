"""Tests mixtures: the environment of a seed, shares, and groups in a single environment."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import ConfigurationError
from visenv.policies.oracle import OraclePolicy
from visenv.rollout import Collector, Executor, InlineExecutor, Mixture, ProcessExecutor
from visenv.testing import toy

MIXTURE = Mixture(
    {"one": toy.make, "two": partial(toy.make, turns=2)},  # the oracle takes three turns
    {"one": 3.0, "two": 1.0},
)


def test_shares_follow_the_weights() -> None:
    counts = Counter(MIXTURE.choose(seed) for seed in range(4000))
    # 3 of 4 is 3000, with a standard deviation of 27.
    assert counts["one"] == pytest.approx(3000, abs=140)
    assert set(counts) == {"one", "two"}


@given(st.integers(0, 2**63 - 1), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_choice_is_a_function_of_the_seed(seed: int, weights: list[float]) -> None:
    names = [str(place) for place in range(len(weights))]
    mixture = Mixture(dict.fromkeys(names, toy.make), dict(zip(names, weights, strict=True)))
    assert mixture.choose(seed) in names
    assert mixture.choose(seed) == mixture.choose(seed)


@pytest.mark.slow
@pytest.mark.parametrize("executor", [InlineExecutor, ProcessExecutor])
def test_members_of_a_group_play_the_same_environment(executor: Any) -> None:
    made: Executor = executor()
    collector = Collector(MIXTURE, OraclePolicy(), executor=made, concurrency=2)
    groups = collector.groups(range(8), 2)
    collector.close()
    for seed, group in enumerate(groups):
        turns = 3 if MIXTURE.choose(seed) == "one" else 2
        assert [len(episode.turns) for episode in group] == [turns, turns]
        assert len({episode.sample_id for episode in group}) == 1
    assert {MIXTURE.choose(seed) for seed in range(8)} == {"one", "two"}


@pytest.mark.parametrize(
    ("makers", "weights", "says"),
    [
        ({}, {}, "a weight for each environment"),
        ({"a": toy.make}, {"b": 1.0}, "a weight for each environment"),
        ({"a": toy.make}, {"a": 0.0}, "weight of a must be above 0"),
        ({"a": toy.make}, {"a": -1.0}, "weight of a must be above 0"),
        ({"a": toy.make}, {"a": float("nan")}, "weight of a must be above 0"),
        ({"a": toy.make}, {"a": float("inf")}, "weight of a must be above 0"),
    ],
)
def test_mixture_refuses_invalid_settings(
    makers: Any, weights: dict[str, float], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Mixture(makers, weights)
