"""Tests that a player causes an observation only if a wrapper may read it."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import PassiveEnvChecker, TimeLimit
from typing_extensions import override

from visenv.env import EpisodeLimits, Observation
from visenv.errors import DataError
from visenv.grammar import KeyValueGrammar
from visenv.policies.oracle import OraclePolicy
from visenv.rewards import RewardTerm, RewardWrapper
from visenv.rollout import Env, EpisodeSpec, play
from visenv.rollout.adapter import EnvAdapter
from visenv.testing import toy
from visenv.types import Episode, Image, Message
from visenv.wrappers import MessageWrapper

EMPTY: Observation = {"text": "", "images": ()}
PICTURE = Image.from_pixels(np.zeros((4, 4, 3), np.uint8))


class Watched(toy.Adder):
    """Shows a picture, and records the observations that `VisEnv` returns."""

    def __init__(self) -> None:
        super().__init__(
            source=toy.Sums(),
            grammar=KeyValueGrammar(),
            tools=[toy.Add()],
            limits=EpisodeLimits(turns=4),
        )
        self.seen: list[Any] = []

    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", ("How much?", PICTURE))]

    @override
    def reset(self, **arguments: Any) -> Any:
        result = super().reset(**arguments)
        self.seen.append(result[0])
        return result

    @override
    def step(self, action: str) -> Any:
        result = super().step(action)
        self.seen.append(result[0])
        return result


class Reads(gym.Wrapper[Any, Any, Any, Any]):
    """Pays for each image that it has observed."""

    @override
    def reset(self, **arguments: Any) -> Any:
        observation, info = self.env.reset(**arguments)
        self.images = len(observation["images"])
        return observation, info

    @override
    def step(self, action: str) -> Any:
        observation, _, *rest = self.env.step(action)
        self.images += len(observation["images"])
        return observation, float(self.images), *rest


class Shout(MessageWrapper):
    """Writes messages in capitals, and leaves out images."""

    @override
    def messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(Message(role, (str(parts[0]).upper(),)) for role, parts in messages)


class Half(gym.RewardWrapper[Any, Any]):
    @override
    def reward(self, reward: Any) -> float:
        return float(reward) / 2


def rewarded(env: Env) -> Env:
    return RewardWrapper(env, [RewardTerm("one", 1.0, lambda _context: 1.0)])


def limited(env: Env) -> Env:
    return TimeLimit(env, 9)


def base_of(env: Env) -> Watched:
    assert isinstance(env.unwrapped, Watched)
    return env.unwrapped


def played(env: Env) -> Episode:
    return asyncio.run(play(env, OraclePolicy(), EpisodeSpec(0)))


@pytest.mark.parametrize("wrap", [lambda env: env, rewarded, limited, Shout, Half])
def test_player_causes_no_observation(wrap: Callable[[Env], Env]) -> None:
    env = wrap(Watched())
    episode = played(env)
    assert (episode.status, len(episode.turns)) == ("terminated", 3)
    assert base_of(env).seen == [EMPTY] * 4


@pytest.mark.parametrize("wrap", [lambda env: env, rewarded, limited, Shout, Half])
def test_environment_returns_observations_again_after_a_player(
    wrap: Callable[[Env], Env],
) -> None:
    env = wrap(Watched())
    played(env)
    observation, info = env.reset(seed=0)
    assert observation["text"] == info["step"].messages[0].plain()
    assert len(observation["images"]) == len(info["step"].messages[0].images)
    assert env.step("what?")[0]["text"]


@pytest.mark.parametrize(
    "wrap", [Reads, lambda env: Half(Reads(env)), lambda env: Reads(Shout(env))]
)
def test_wrapper_that_may_read_observations_gets_them(wrap: Callable[[Env], Env]) -> None:
    env, direct = wrap(Watched()), wrap(Watched())
    episode = played(env)
    direct.reset(seed=0)
    rewards = [float(direct.step(turn.text)[1]) for turn in episode.turns]
    assert [turn.reward for turn in episode.turns] == rewards
    assert base_of(env).seen[0]["text"] == "How much?<image>"
    assert all(turn["text"] for turn in base_of(env).seen[1:-1])


def test_environment_returns_observations_again_after_an_error() -> None:
    class Fails(Watched):
        @override
        def initial_messages(self) -> list[Message]:
            if self.observes:
                return super().initial_messages()
            raise DataError("no picture")

    env = Fails()
    with pytest.raises(DataError, match="no picture"):
        EnvAdapter(env).begin(0)
    observation, _ = env.reset(seed=0)
    assert observation["text"]


def test_checker_of_gymnasium_accepts_the_empty_observations_of_a_player() -> None:
    env = gym.make(toy.register(), disable_env_checker=False)
    assert isinstance(env, PassiveEnvChecker)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert played(env).status == "terminated"


@pytest.mark.parametrize("wrap", [lambda env: env, Shout])
def test_observation_of_an_environment_can_be_switched_off(wrap: Callable[[Env], Env]) -> None:
    env = wrap(Watched())
    base_of(env).observes = False
    assert env.reset(seed=0)[0] == EMPTY
    assert env.step("what?")[0] == EMPTY
