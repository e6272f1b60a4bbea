"""Tests `RewardWrapper`: the rewards and the turns that they are paid for, worked by hand."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from visenv.errors import ServiceError
from visenv.rewards import RewardTerm, RewardWrapper, of_log
from visenv.testing import toy
from visenv.types import Aborted, EventLog, Sample, TurnTaken

ADD = "<tool>\nname: add\namount: 3\n</tool>"


def paying(*terms: RewardTerm, **options: Any) -> RewardWrapper:
    env = toy.make(**options)
    assert isinstance(env, RewardWrapper)
    return RewardWrapper(env.env, terms)


def constant(name: str, weight: float, value: float) -> RewardTerm:
    return RewardTerm(name, weight, lambda _context: value)


def calls(log: EventLog, sample: Sample) -> float:
    return float(len(log.tool_calls))


def judge_is_down(log: EventLog, sample: Sample) -> float:
    raise ServiceError("judge", "no reply")


def test_terms_are_weighted_and_recorded_unweighted() -> None:
    env = paying(
        constant("a", 0.5, 0.8), constant("b", -2.0, 0.1), RewardTerm("calls", 0.25, of_log(calls))
    )
    env.reset(seed=0)
    _, reward, *_, info = env.step(ADD)
    assert reward == 0.0, "nothing is paid before the end"
    assert info["step"].terms == {}
    env.step(ADD)
    _, reward, terminated, _, info = env.step("<answer>1</answer>")
    # 0.5 * 0.8 - 2.0 * 0.1 + 0.25 * 2 calls = 0.4 - 0.2 + 0.5 = 0.7
    assert reward == pytest.approx(0.7, abs=1e-12)
    assert type(reward) is float
    assert terminated
    assert info["step"].terms == {"a": 0.8, "b": 0.1, "calls": 2.0}


def test_terms_read_the_log_and_the_sample() -> None:
    env = toy.make()
    env.reset(seed=0)
    base = env.unwrapped
    rewards = []
    for _ in range(3):
        _, reward, *_ = env.step(base.grammar.compose(base.oracle_turn()))  # type: ignore[attr-defined]
        rewards.append(float(reward))
    # 0.8 for the right total + 0.2 for a successful tool call.
    assert rewards == [0.0, 0.0, 1.0]


def test_truncated_episode_has_a_reward() -> None:
    env = paying(constant("format", 0.5, 1.0), turns=1)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(ADD)
    assert (reward, terminated, truncated) == (0.5, False, True)
    assert info["step"].terms == {"format": 1.0}


def test_aborted_episode_is_not() -> None:
    env = paying(constant("format", 0.5, 1.0), trouble=True)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(
        "<tool>\nname: trouble\nkind: service\n</tool>"
    )
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["aborted"] == "search: the server is down"
    assert info["step"].terms == {}


def test_term_that_cannot_be_computed_aborts() -> None:
    env = paying(constant("format", 0.5, 1.0), RewardTerm("judged", 1.0, of_log(judge_is_down)))
    env.reset(seed=0)
    env.step(ADD)
    _, reward, terminated, truncated, info = env.step("<answer>1</answer>")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["aborted"] == "judge: no reply"
    record = info["step"]
    assert isinstance(record.events[0], TurnTaken)
    assert record.events[-1] == Aborted(1, "judge", "no reply")
    assert (record.terms, record.metrics, record.request) == ({}, {}, None)


def test_truncated_episode_whose_term_fails_is_aborted_only() -> None:
    env = paying(RewardTerm("judged", 1.0, of_log(judge_is_down)), turns=1)
    env.reset(seed=0)
    *_, info = env.step(ADD)
    assert (info["aborted"], info["truncated_by"]) == ("judge: no reply", "")


def test_term_that_cannot_be_computed_can_raise_instead() -> None:
    env = paying(RewardTerm("judged", 1.0, of_log(judge_is_down)), on_abort="raise")
    env.reset(seed=0)
    with pytest.raises(ServiceError, match="judge: no reply"):
        env.step("<answer>1</answer>")


def test_spec_is_the_environments_own() -> None:
    env = gym.make(toy.register(), turns=5)
    assert env.spec is not None
    assert env.spec.additional_wrappers == ()
    again = gym.make(type(env.spec).from_json(env.spec.to_json()))
    assert again.unwrapped.limits.turns == 5  # type: ignore[attr-defined]
    assert again.reset(seed=1)[0] == env.reset(seed=1)[0]
