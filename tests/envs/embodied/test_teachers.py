"""Tests the teacher of the houses: its detour, and the look-alike that it takes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.embodied.env import HouseEnv, TakesLookalike
from visenv.envs.embodied.oracle import look_at
from visenv.errors import ConfigurationError

SEEDS = range(8)


def begun(seed: int, **options: Any) -> HouseEnv:
    """Return a task in a house; frames are gray, so that no OpenGL is needed."""
    env = gym.make("visenv/House-v0", blind=True, **{"preset": "tiny", **options}).unwrapped
    assert isinstance(env, HouseEnv)
    env.reset(seed=seed)
    return env


def played(env: HouseEnv, teacher: TakesLookalike | None) -> list[str]:
    """Play a teacher, or the oracle; return the names of the executed actions."""
    over = False
    while not over:
        rng = np.random.default_rng(0)
        turn = env.oracle_turn() if teacher is None else teacher.turn(env, rng)
        _, _, terminated, truncated, _ = env.step(env.grammar.compose(turn))
        over = terminated or truncated
    return [call.arguments["action_name"] for call in env.log.tool_calls]


def look(env: HouseEnv, name: str) -> str:
    return env.simulation.dialect.names[look_at(env.simulation, name)]


@pytest.mark.parametrize("seed", SEEDS)
def test_detour_is_the_next_lookalike_after_the_object_was_found(seed: int) -> None:
    straight = played(begun(seed), None)
    env = begun(seed)
    truth = env.truth
    later = [name for name in sorted(truth.others) if name > truth.targets[0]]
    found = straight.index(look(env, truth.targets[0])) + 1
    detoured = played(env, TakesLookalike(rate=0.0))
    assert env.simulation.succeeded
    assert detoured[:found] == straight[:found]
    if later:
        assert detoured[found] == look(env, later[0])
        assert len(detoured) > len(straight)
    else:
        assert detoured == straight


@pytest.mark.parametrize("seed", SEEDS)
def test_teacher_brings_a_lookalike_after_it_saw_the_object(seed: int) -> None:
    env = begun(seed)
    held: list[str] = []
    teacher = TakesLookalike(rate=1.0, detour=0)
    over = False
    while not over:
        turn = teacher.turn(env, np.random.default_rng(0))
        _, _, terminated, truncated, _ = env.step(env.grammar.compose(turn))
        over = terminated or truncated
        held.append(env.simulation.state.held)
    actions = [call.arguments["action_name"] for call in env.log.tool_calls]
    taken = {name for name, _ in env.simulation.state.delivered}
    assert len(taken) == 1
    assert taken <= set(env.truth.others)
    assert look(env, env.truth.targets[0]) in actions
    assert not env.simulation.succeeded
    assert env.log.answer is not None  # it believes that it is done


def test_task_without_lookalikes_is_played_as_by_the_oracle() -> None:
    options = {"preset": "house", "subset": "base"}
    env, other = begun(0, **options), begun(0, **options)
    assert not env.truth.others
    assert played(env, TakesLookalike(rate=1.0)) == played(other, None)
    assert env.simulation.succeeded


def test_number_of_looks_is_not_negative() -> None:
    with pytest.raises(ConfigurationError, match="detour must be 0 or more"):
        TakesLookalike(detour=-1)
