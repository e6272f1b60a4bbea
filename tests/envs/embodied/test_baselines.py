"""Tests the policies `direct` and `cot` with plans as turns: their prompts and actions."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import pytest

from visenv.envs.embodied.baselines import PROMPTS
from visenv.errors import ConfigurationError
from visenv.grammar.plan import TEXT_KEYS
from visenv.policies.baselines import ChainOfThoughtPolicy, DirectPolicy, RetrievalPolicy
from visenv.policies.scripted import ScriptedPolicy
from visenv.rollout import EpisodeSpec, play
from visenv.testing.record import base_of
from visenv.types import Episode, Message, TurnRequest

pytestmark = pytest.mark.component("mujoco", "osmesa")


def oracle_plan(thought: str) -> str:
    """Return the plan that solves the task of seed 0, with the same text for each key."""
    env: Any = gym.make("visenv/House-v0", preset="tiny")
    env.reset(seed=0)
    truth, names = base_of(env).truth, base_of(env).simulation.dialect.names  # type: ignore[attr-defined]
    env.close()
    entries = [{"action_id": index, "action_name": names[index]} for index in truth.plan]
    return json.dumps(dict.fromkeys(TEXT_KEYS, thought) | {"executable_plan": entries})


class Model:
    """Returns one reply, and records the messages and requests of the policy."""

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.shown: list[Message] = []
        self.asked: list[TurnRequest] = []

    def __call__(self, messages: Sequence[Message], request: TurnRequest) -> str:
        self.shown += messages
        self.asked.append(request)
        return self.reply


def played(policy: Any) -> Episode:
    env: Any = gym.make("visenv/House-v0", preset="tiny")
    return asyncio.run(play(env, policy, EpisodeSpec(0)))


@pytest.mark.parametrize(
    ("made", "thought", "instruction"),
    [(DirectPolicy, "", PROMPTS.answer), (ChainOfThoughtPolicy, "So it is.", PROMPTS.reason)],
)
def test_wrapped_model_writes_the_plan_and_reads_how(
    made: type[DirectPolicy], thought: str, instruction: str
) -> None:
    model = Model(oracle_plan(thought))
    episode = played(made(ScriptedPolicy(model), prompts=PROMPTS))
    assert episode.metrics["success"] == 1.0
    assert model.shown[-1].plain().endswith(instruction)
    assert "Actions:" in "".join(message.plain() for message in model.shown)
    assert episode.turns[0].text == model.reply
    assert episode.segments == ()


def test_constrained_direct_turn_has_no_reasoning_and_one_with_reasoning_may_have() -> None:
    silent, thinking = oracle_plan(""), oracle_plan("So it is.")
    asked = []
    for made in (DirectPolicy, ChainOfThoughtPolicy):
        model = Model(silent)
        played(made(ScriptedPolicy(model), prompts=PROMPTS))
        asked.append(str(model.asked[0].regex))
    direct, cot = asked
    assert re.fullmatch(direct, silent)
    assert not re.fullmatch(direct, thinking)
    assert re.fullmatch(cot, thinking)


def test_baseline_without_plans_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="direct or cot"):
        played(RetrievalPolicy(ScriptedPolicy(["x"]), prompts=PROMPTS))
