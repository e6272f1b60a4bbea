"""Tests the teacher of the houses: how many objects it looks at, and the look-alike it takes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.embodied.env import HouseEnv, TakesLookalike
from visenv.envs.embodied.oracle import looks
from visenv.errors import ConfigurationError

SEEDS = range(12)


def begun(seed: int, **options: Any) -> HouseEnv:
    """Return a task in a house; frames are gray, so that no OpenGL is needed."""
    env = gym.make("visenv/House-v0", blind=True, **{"preset": "tiny", **options}).unwrapped
    assert isinstance(env, HouseEnv)
    env.reset(seed=seed)
    return env


def played(env: HouseEnv, teacher: TakesLookalike | None, draws: int = 0) -> list[str]:
    """Play a teacher, or the oracle; return the names of the executed actions."""
    over = False
    while not over:
        rng = np.random.default_rng(draws)
        turn = env.oracle_turn() if teacher is None else teacher.turn(env, rng)
        _, _, terminated, truncated, _ = env.step(env.grammar.compose(turn))
        over = terminated or truncated
    return [call.arguments["action_name"] for call in env.log.tool_calls]


def objects(env: HouseEnv) -> list[str]:
    """Return the objects of the right type in the order in which they are looked at."""
    return sorted((*env.truth.targets, *env.truth.others))


def looked(env: HouseEnv, actions: list[str]) -> list[str]:
    """Return the objects that were looked at before one was taken."""
    names = [env.simulation.dialect.names[index] for index in looks(env.simulation)]
    taken = next(index for index, name in enumerate(actions) if name.startswith("pick up"))
    return [name for name in actions[:taken] if name in names]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("known", [1, 2, 4])
def test_object_is_found_only_among_the_first_ones(seed: int, known: int) -> None:
    env = begun(seed)
    place = objects(env).index(env.truth.targets[0])
    actions = played(env, TakesLookalike(known=known))
    if place < known:
        assert actions == played(begun(seed), None)
        assert env.simulation.succeeded
    else:
        taken = {name for name, _ in env.simulation.state.delivered}
        assert len(taken) == 1
        assert taken <= set(env.truth.others)
        assert not env.simulation.succeeded
        assert env.log.answer is not None  # it believes that it is done


@pytest.mark.parametrize("seed", SEEDS)
def test_detour_is_a_look_at_the_next_object(seed: int) -> None:
    env = begun(seed)
    place = objects(env).index(env.truth.targets[0])
    order = [env.simulation.dialect.names[index] for index in looks(env.simulation)]
    straight = looked(env, played(env, TakesLookalike(known=1, detour=0.0)))
    detoured = looked(env, played(begun(seed), TakesLookalike(known=1, detour=1.0)))
    if place == 0:
        assert straight == detoured == order[:1]
    else:  # at most one more find, that of the look-alike which is taken
        assert straight[0] == order[0]
        assert len(straight) <= 2
        assert detoured[:2] == order[:2]
        assert len(detoured) <= 3


def test_detour_is_in_a_share_of_the_episodes() -> None:
    seed = next(s for s in SEEDS if objects(e := begun(s)).index(e.truth.targets[0]) == 3)
    teacher, episodes = TakesLookalike(known=1, detour=0.25), 100
    second = begun(seed).simulation.dialect.names[looks(begun(seed).simulation)[1]]
    seconds = [played(begun(seed), teacher, draws)[1] == second for draws in range(episodes)]
    # Without a detour, the second object is the one that is taken with the chance 1/3.
    assert 40 <= sum(seconds) <= 60


def test_task_without_lookalikes_is_played_as_by_the_oracle() -> None:
    options = {"preset": "house", "subset": "base"}
    env = begun(0, **options)
    assert not env.truth.others
    assert played(env, TakesLookalike()) == played(begun(0, **options), None)
    assert env.simulation.succeeded


def test_task_without_search_is_played_with_a_random_object() -> None:
    results = Counter[bool]()
    for draws in range(24):
        env = begun(0, preset="house", subset="visual_appearance")
        assert env.truth.others
        played(env, TakesLookalike(), draws)
        results[env.simulation.succeeded] += 1
    assert results[True] >= 3
    assert results[False] >= 3


def test_teacher_without_strength_is_the_oracle() -> None:
    for seed in SEEDS:
        assert played(begun(seed), TakesLookalike(strength=0.0)) == played(begun(seed), None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"known": -1}, "known must be 0 or more"),
        ({"detour": -0.1}, "detour must be from 0 to 1"),
        ({"detour": 1.1}, "detour must be from 0 to 1"),
    ],
)
def test_options_are_in_their_ranges(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        TakesLookalike(**options)
