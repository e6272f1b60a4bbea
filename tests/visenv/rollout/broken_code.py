"""Contains code with bugs, as a user would write it: reward terms, tools, environments, policies.

Each line that raises has a comment ``LINE`` with the name of the bug.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import gymnasium as gym
from typing_extensions import override

from visenv.env import EpisodeLimits
from visenv.grammar import KeyValueGrammar
from visenv.policy import Policy, Session
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper
from visenv.rollout.adapter import Env
from visenv.testing import toy
from visenv.tools.base import Store
from visenv.types import Message, Reply, Sample, Sampling, TurnRequest


def adder(kind: type[toy.Adder] = toy.Adder, source: Any = None, tool: Any = None) -> toy.Adder:
    return kind(
        source=source or toy.Sums(),
        grammar=KeyValueGrammar(),
        tools=[tool or toy.Add()],
        limits=EpisodeLimits(4),
    )


def missing(sample: Any) -> float:
    return float(sample.tint)  # LINE term


def color(context: RewardContext) -> float:
    return missing(context.sample)


async def late_color(context: RewardContext) -> float:
    await asyncio.sleep(0)
    return missing(context.sample)


def with_term() -> Env:
    return RewardWrapper(adder(), [RewardTerm("color", 1.0, color)])


def with_late_term() -> Env:
    return RewardWrapper(adder(), [RewardTerm("color", 1.0, late_color)])


def lookup(terms: Any) -> float:
    return float(terms["no such term"])  # LINE combine


def with_combine() -> Env:
    return RewardWrapper(adder(), [RewardTerm("right", 1.0, lambda _: 1.0)], combine=lookup)


def with_nan() -> Env:
    return RewardWrapper(adder(), [RewardTerm("unknown", 1.0, lambda _: float("nan"))])


class BrokenHook(toy.Adder):
    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", (self.sample.answers[7],))]  # LINE hook


def with_hook() -> Env:
    return adder(BrokenHook)


class BrokenWrapper(gym.Wrapper[Any, Any, Any, Any]):
    @override
    def step(self, action: Any) -> Any:
        return super().step(action)[7]  # type: ignore[misc]  # LINE wrapper


def with_wrapper() -> Env:
    return BrokenWrapper(adder())


class BrokenTool(toy.Add):
    @override
    def call(self, arguments: Any, store: Store) -> NoReturn:
        raise NotImplementedError("later")  # LINE tool


def with_tool() -> Env:
    return adder(tool=BrokenTool())


class BrokenSource(toy.Sums):
    @override
    def sample(self, rng: Any) -> Sample:
        raise AssertionError  # LINE source


def with_source() -> Env:
    return adder(source=BrokenSource())


class BrokenPolicy(Policy[Session]):
    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        return self.model.reply()  # type: ignore[attr-defined, no-any-return]  # LINE policy
