"""RandomPolicy on the toy environment."""

from __future__ import annotations

import asyncio
from collections import Counter

import gymnasium as gym
import pytest

from visenv.env import VisEnv
from visenv.errors import PolicyError
from visenv.policies.random import RandomPolicy
from visenv.rollout import EpisodeSpec, play
from visenv.testing import toy
from visenv.types import Episode, Sampling, TurnRequest

ENV_ID = toy.register()


def played(seed: int, member: int = 0) -> Episode:
    return asyncio.run(play(gym.make(ENV_ID), RandomPolicy(), EpisodeSpec(seed, member=member)))


def test_one_seed_one_episode() -> None:
    assert played(7).turns == played(7).turns


def test_members_of_a_group_play_differently() -> None:
    # Six independent members that all begin with the same noise would be a shared generator.
    assert len({played(7, member).turns[0].text for member in range(6)}) > 1


def test_half_of_the_turns_are_well_formed() -> None:
    env = gym.make(ENV_ID)
    base = env.unwrapped
    assert isinstance(base, VisEnv)
    env.reset(seed=0)
    policy = RandomPolicy()
    session = policy.open(0)

    async def many() -> list[str]:
        return [(await policy.respond(session, TurnRequest(), Sampling())).text for _ in range(400)]

    kinds: Counter[str] = Counter()
    for text in asyncio.run(many()):
        turn = base.grammar.parse(text)
        kinds["noise" if turn.problems else "call" if turn.calls else "answer"] += 1
        if turn.calls:
            base.tools["add"].arguments.model_validate(dict(turn.calls[0].arguments))
    # Binomial(400, 1/2) has a standard deviation of 10: 150 to 250 is five of them; the other half
    # is shared by one tool and the answer: Binomial(400, 1/4), standard deviation 8.7.
    assert 150 <= kinds["noise"] <= 250
    assert 57 <= kinds["call"] <= 143
    assert 57 <= kinds["answer"] <= 143


def test_leaves_the_generators_of_the_environment_alone() -> None:
    touched, untouched = gym.make(ENV_ID), gym.make(ENV_ID)
    for env in (touched, untouched):
        env.reset(seed=1)
        env.action_space.seed(1)
    policy = RandomPolicy()
    session = policy.open(touched, 5)
    for _ in range(10):
        asyncio.run(policy.respond(session, TurnRequest(), Sampling()))
    assert touched.action_space.sample() == untouched.action_space.sample()
    assert touched.np_random.random() == untouched.np_random.random()


def test_an_environment_of_another_process_is_named() -> None:
    with pytest.raises(PolicyError, match="random policy reads"):
        RandomPolicy().open(0)
