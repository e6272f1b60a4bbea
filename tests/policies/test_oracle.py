"""Tests `OraclePolicy` in the toy environment."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.policies.oracle import OraclePolicy
from visenv.rollout import Collector, EpisodeSpec, play
from visenv.testing import toy
from visenv.types import Answered, Failure, Sampling, StepResult, ToolCalled, TurnRequest

ENV_ID = toy.register()


class Foreign(gym.Env[Any, str]):
    """Implements an environment that does not extend `VisEnv`."""

    @override
    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return None, {"step": StepResult((), (), TurnRequest())}


@pytest.mark.parametrize("seed", range(5))
def test_oracle_gets_the_top_reward(seed: int) -> None:
    episode = asyncio.run(play(gym.make(ENV_ID), OraclePolicy(), EpisodeSpec(seed)))
    assert (episode.status, episode.reward) == ("terminated", 1.0)  # 0.8 * 1 + 0.2 * 1


def test_oracle_plays_through_the_grammar_of_the_environment() -> None:
    env = gym.make(ENV_ID)
    episode = asyncio.run(play(env, OraclePolicy(), EpisodeSpec(0)))
    first, second = env.unwrapped.sample.ground_truth.add  # type: ignore[attr-defined]
    calls = [event for event in episode.events if isinstance(event, ToolCalled)]
    assert [dict(call.arguments) for call in calls] == [{"amount": first}, {"amount": second}]
    answers = [event.answer for event in episode.events if isinstance(event, Answered)]
    assert answers == [str(first + second)]


def test_thought_replaces_the_thoughts_and_nothing_else() -> None:
    plain = asyncio.run(play(gym.make(ENV_ID), OraclePolicy(), EpisodeSpec(3)))
    spoken = asyncio.run(play(gym.make(ENV_ID), OraclePolicy(thought="hm"), EpisodeSpec(3)))
    assert spoken.turns[0].text.startswith("<think>hm</think>")
    rest = [[turn.text.partition("</think>")[2] for turn in each.turns] for each in (plain, spoken)]
    assert rest[0] == rest[1]


def test_environment_without_ground_truth_is_named() -> None:
    episode = asyncio.run(play(Foreign(), OraclePolicy(), EpisodeSpec(0)))
    assert episode.failure == Failure(
        "policy",
        "PolicyError",
        "DemonstrationRequest needs an environment that extends VisEnv, got Foreign.",
    )


def test_loop_that_gives_no_advice_is_named() -> None:
    policy = OraclePolicy()
    with pytest.raises(PolicyError, match=r"The oracle policy takes turns .* and got none"):
        asyncio.run(policy.respond(policy.open(0), TurnRequest(), Sampling()))


def hasty(expert_rate: float) -> list[bool]:
    collector = Collector(lambda: gym.make(ENV_ID), OraclePolicy(expert_rate=expert_rate))
    episodes = collector.episodes([EpisodeSpec(seed) for seed in range(200)])
    return [len(episode.turns) == 1 for episode in episodes]


@pytest.mark.slow
def test_seed_selects_the_episodes_without_tools() -> None:
    assert hasty(0.25) == hasty(0.25)
    # 150 of 200 expected; five standard deviations are 5 * sqrt(200 * 0.25 * 0.75) = 31
    assert 119 <= sum(hasty(0.25)) <= 181
    assert not any(hasty(1.0))


def test_oracle_with_expert_rate_0_gives_up_without_a_tool() -> None:
    episode = asyncio.run(play(gym.make(ENV_ID), OraclePolicy(expert_rate=0.0), EpisodeSpec(0)))
    assert not any(isinstance(event, ToolCalled) for event in episode.events)
    assert [event.answer for event in episode.events if isinstance(event, Answered)] == ["unknown"]
    assert len(episode.turns) == 1


@pytest.mark.parametrize("expert_rate", [-0.1, 1.1, float("nan")])
def test_care_is_a_share(expert_rate: float) -> None:
    with pytest.raises(ConfigurationError, match="expert_rate"):
        OraclePolicy(expert_rate=expert_rate)
