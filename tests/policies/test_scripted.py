"""Tests `ScriptedPolicy` in the toy environment."""

from __future__ import annotations

import asyncio
import pickle

import gymnasium as gym
import pytest

from visenv.errors import PolicyError
from visenv.policies.scripted import ScriptedPolicy
from visenv.rollout import EpisodeSpec, play
from visenv.testing import toy
from visenv.types import Message, Sampling, TurnRequest

ENV_ID = toy.register()
NOTHING = "<answer>0</answer>"


def test_scripted_policy_plays_its_turns_in_order_in_each_episode() -> None:
    call = "<think></think><tool>\nname: add\namount: 3\n</tool>"
    policy = ScriptedPolicy([call, NOTHING])
    for seed in (1, 2):
        episode = asyncio.run(play(gym.make(ENV_ID), policy, EpisodeSpec(seed)))
        assert [turn.text for turn in episode.turns] == [call, NOTHING]
        assert episode.status == "terminated"


def test_sessions_read_the_script_independently() -> None:
    policy = ScriptedPolicy(["one", "two"])
    first, second = policy.open(0), policy.open(0)

    async def interleaved() -> list[str]:
        order = (first, second, first, second)
        return [
            (await policy.respond(session, TurnRequest(), Sampling())).text for session in order
        ]

    assert asyncio.run(interleaved()) == ["one", "one", "two", "two"]
    assert first.messages == [Message("assistant", ("one",)), Message("assistant", ("two",))]


def test_script_that_runs_out_raises_an_error() -> None:
    policy = ScriptedPolicy(["only turn"])
    session = policy.open(0)
    asyncio.run(policy.respond(session, TurnRequest(), Sampling()))
    with pytest.raises(PolicyError, match="has 1 turns, but the episode requests turn 2"):
        asyncio.run(policy.respond(session, TurnRequest(), Sampling()))


def test_short_script_aborts_the_episode_with_the_reason() -> None:
    episode = asyncio.run(play(gym.make(ENV_ID), ScriptedPolicy(["noise"]), EpisodeSpec(0)))
    assert episode.status == "aborted"
    assert episode.failure is not None
    assert episode.failure.source == "policy"
    assert "The script has 1 turns" in episode.failure.reason


def test_function_sees_the_conversation_and_the_ask() -> None:
    seen: list[tuple[int, TurnRequest]] = []

    def answer_at_the_second_turn(messages: object, request: TurnRequest) -> str:
        assert isinstance(messages, list)
        seen.append((len(messages), request))
        return "noise" if len(messages) == 1 else NOTHING

    policy = ScriptedPolicy(answer_at_the_second_turn)
    episode = asyncio.run(play(gym.make(ENV_ID), policy, EpisodeSpec(0)))
    assert [turn.text for turn in episode.turns] == ["noise", NOTHING]
    # First only the question; then the question, the policy's turn and the error.
    assert [count for count, _ in seen] == [1, 3]
    assert seen[0][1].stop == ("</tool>", "</answer>")


def test_string_as_a_script_is_refused() -> None:
    with pytest.raises(TypeError, match="sequence of turns"):
        ScriptedPolicy("answer")


def test_pickles() -> None:
    copied = pickle.loads(pickle.dumps(ScriptedPolicy(["a", "b"])))
    assert copied.turns == ("a", "b")
    assert repr(copied) == "ScriptedPolicy(2 turns)"
