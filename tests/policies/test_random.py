"""Tests `RandomPolicy` in the toy environment."""

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


def test_random_policy_is_seeded() -> None:
    assert played(7).turns == played(7).turns


def test_members_of_a_group_play_differently() -> None:
    # If six independent members all began with the same noise, they would share a generator.
    assert len({played(7, member).turns[0].text for member in range(6)}) > 1


@pytest.mark.slow
def test_random_policy_writes_half_of_its_turns_well_formed() -> None:
    env = gym.make(ENV_ID)
    base = env.unwrapped
    assert isinstance(base, VisEnv)
    # Each of these first turns of 400 episodes is drawn from its own generator.
    texts = [played(seed).turns[0].text for seed in range(400)]
    kinds: Counter[str] = Counter()
    for text in texts:
        turn = base.grammar.parse(text)
        kinds["noise" if turn.problems else "call" if turn.calls else "answer"] += 1
        if turn.calls:
            base.tools["add"].arguments.model_validate(dict(turn.calls[0].arguments))
    # The bounds are five standard deviations: 10 for Binomial(400, 1/2). The other half is split
    # between one tool and the answer: 8.7 for Binomial(400, 1/4).
    assert 150 <= kinds["noise"] <= 250
    assert 57 <= kinds["call"] <= 143
    assert 57 <= kinds["answer"] <= 143


def test_random_policy_does_not_use_the_generators_of_the_environment() -> None:
    touched, untouched = gym.make(ENV_ID), gym.make(ENV_ID)
    for env in (touched, untouched):
        env.action_space.seed(1)
    asyncio.run(play(touched, RandomPolicy(), EpisodeSpec(1)))
    untouched.reset(seed=1)
    assert touched.action_space.sample() == untouched.action_space.sample()
    assert touched.np_random.random() == untouched.np_random.random()


def test_loop_that_gives_no_advice_is_named() -> None:
    policy = RandomPolicy()
    with pytest.raises(PolicyError, match=r"The random policy takes turns .* and got none"):
        asyncio.run(policy.respond(policy.open(0), TurnRequest(), Sampling()))
