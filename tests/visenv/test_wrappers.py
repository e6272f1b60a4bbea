"""Tests wrappers around an environment: those with an effect, refused ones, restored ones."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.policies.oracle import OraclePolicy
from visenv.policies.scripted import ScriptedPolicy
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper
from visenv.rollout import Collector, Env, EpisodeSpec, play
from visenv.testing import toy
from visenv.types import Episode, Message, Truncated
from visenv.wrappers import MessageWrapper

CALL = "<think>a</think><tool>\nname: add\namount: 1\n</tool>"


def made(**options: Any) -> Env:
    return gym.make(toy.register(), **options)


def played(env: Env, seed: int = 0) -> Episode:
    return asyncio.run(play(env, OraclePolicy(), EpisodeSpec(seed)))


class Shout(MessageWrapper):
    """Writes messages in capitals."""

    def __init__(self, env: Env, mark: str = "!") -> None:
        super().__init__(env)
        self.mark = mark

    @override
    def messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            Message(each.role, tuple(str(part).upper() + self.mark for part in each.parts))
            for each in messages
        )


class Constant(RewardWrapper):
    """Pays the same for every episode."""

    def __init__(self, env: Env, value: float) -> None:
        self.value = value
        super().__init__(env, [RewardTerm("constant", 1.0, self._score)])

    def _score(self, context: RewardContext) -> float:
        return self.value


class Halved(gym.RewardWrapper[Any, Any]):
    @override
    def reward(self, reward: Any) -> float:
        return float(reward) / 2


class Ends(gym.Wrapper[Any, Any, Any, Any]):
    """Ends every episode after one turn."""

    terminates = True

    @override
    def step(self, action: str) -> Any:
        observation, reward, _, _, info = self.env.step(action)
        return observation, reward, self.terminates, not self.terminates, info


class Cuts(Ends):
    terminates = False


class SeesNothing(gym.ObservationWrapper[Any, Any, Any]):
    @override
    def observation(self, observation: Any) -> Any:
        return {"text": "", "images": ()}


@pytest.mark.parametrize("wrap", [Cuts, lambda env: TimeLimit(env, 1)], ids=["own", "TimeLimit"])
def test_wrapper_that_truncates_ends_the_episode_and_its_terms_are_computed(wrap: Any) -> None:
    episode = played(wrap(made()))
    assert (episode.status, episode.reason, len(episode.turns)) == ("truncated", "wrapper", 1)
    assert episode.events[-1] == Truncated(0, "wrapper")
    # 0.8 x correct + 0.2 x tool used: a tool was used, but no answer was given
    assert (episode.reward, episode.terms) == (0.2, {"correct": 0.0, "tool": 1.0})
    assert episode.metrics == {"accuracy": 0.0}


def test_wrapper_that_terminates_ends_the_episode() -> None:
    episode = played(Ends(made()))
    assert (episode.status, episode.reason, len(episode.turns)) == ("terminated", "", 1)
    assert (episode.reward, episode.metrics) == (0.2, {"accuracy": 0.0})


def test_time_limit_of_make_is_the_end_for_a_collector() -> None:
    collector = Collector(lambda: made(max_episode_steps=1), OraclePolicy())
    episodes = [episode for group in collector.groups([1, 2], 2) for episode in group]
    assert {(each.status, each.reason, len(each.turns)) for each in episodes} == {
        ("truncated", "wrapper", 1)
    }


def test_reward_wrapper_of_gymnasium_changes_the_reward() -> None:
    assert [played(env).reward for env in (made(), Halved(made()))] == [1.0, 0.5]


def test_message_wrapper_changes_what_a_policy_reads() -> None:
    seen: list[str] = []

    def script(messages: Any, _: Any) -> str:
        seen.append(messages[-1].plain())
        return CALL

    env = Shout(made(turns=2), "?")
    asyncio.run(play(env, ScriptedPolicy(script), EpisodeSpec(0)))
    assert seen[0].startswith("ADD ")
    assert seen[1] == "<RESULT>\nTOTAL 1\n</RESULT>?"


def test_message_wrapper_changes_the_observation() -> None:
    env = Shout(made())
    observation, info = env.reset(seed=0)
    plain = made().reset(seed=0)[0]["text"]
    assert observation["text"] == info["step"].messages[0].plain() == plain.upper() + "!"


def test_message_wrapper_that_returns_no_messages_is_named() -> None:
    class Broken(MessageWrapper):
        @override
        def messages(self, messages: tuple[Message, ...]) -> Any:
            return ["text"]

    with pytest.raises(ConfigurationError, match="Broken"):
        Broken(made()).reset(seed=0)


def test_observation_wrapper_is_refused_when_a_rollout_starts() -> None:
    with pytest.raises(ConfigurationError, match=r"SeesNothing .*MessageWrapper"):
        Collector(lambda: SeesNothing(made()), OraclePolicy()).groups([0])


def test_reward_wrapper_survives_its_spec() -> None:
    env = Constant(made(), 7.0)
    assert env.spec is not None
    again = gym.make(env.spec)
    through_json = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert [played(each).reward for each in (env, again, through_json)] == [7.0, 7.0, 7.0]


def test_message_wrapper_survives_its_spec() -> None:
    env = Shout(made(), mark="#")
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=3)[0]["text"] == env.reset(seed=3)[0]["text"]
    assert again.reset(seed=3)[0]["text"].endswith("#")


def test_reward_of_make_is_not_applied_twice_by_its_spec() -> None:
    env = made()
    assert env.spec is not None
    assert env.spec.additional_wrappers == ()
    assert played(gym.make(env.spec)).reward == played(env).reward


class Odd(gym.Wrapper[Any, Any, Any, Any]):
    """Returns the changed result of `step`."""

    def __init__(self, env: Env, change: Any) -> None:
        super().__init__(env)
        self.change = change

    @override
    def step(self, action: str) -> Any:
        return self.change(list(self.env.step(action)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda step: tuple(step[:4]), "must return 5 values"),
        (lambda step: (step[0], "much", *step[2:]), "reward of .* must be a float"),
        (lambda step: (step[0], None, *step[2:]), "reward of .* must be a float"),
        (lambda step: (step[0], 10**400, *step[2:]), "reward of .* must be a float"),
        (lambda step: (*step[:2], 1, *step[3:]), "must be bools"),
        (lambda step: (*step[:4], {}), "must be a dict with a StepResult"),
        (lambda step: (*step[:4], None), "must be a dict with a StepResult"),
    ],
    ids=[
        "four values",
        "text as reward",
        "no reward",
        "reward beyond floats",
        "number as flag",
        "empty info",
        "no info",
    ],
)
def test_wrapper_that_returns_wrong_types_is_named(change: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as caught:
        played(Odd(made(), change))
    assert "Odd" in str(caught.value)


class OddReset(gym.Wrapper[Any, Any, Any, Any]):
    """Returns the changed result of `reset`."""

    def __init__(self, env: Env, change: Any) -> None:
        super().__init__(env)
        self.change = change

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.change(*self.env.reset(seed=seed, options=options))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda observation, info: observation, "must return 2 values"),
        (lambda observation, info: None, "must return 2 values"),
        (lambda observation, info: (observation, {}), "must be a dict with a StepResult"),
        (lambda observation, info: (observation, [info]), "must be a dict with a StepResult"),
    ],
    ids=["observation", "nothing", "empty info", "list as info"],
)
def test_wrapper_whose_reset_returns_wrong_types_is_named(change: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as caught:
        played(OddReset(made(), change))
    assert "OddReset" in str(caught.value)


def test_wrapper_that_continues_an_ended_episode_is_named() -> None:
    def go_on(step: list[Any]) -> Any:
        return (*step[:2], False, False, step[4])

    with pytest.raises(ConfigurationError, match=r"Odd .*the wrapped environment has ended it"):
        played(Odd(made(turns=1), go_on))
