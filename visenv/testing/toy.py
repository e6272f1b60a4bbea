"""Defines a tiny text environment on the real base class, for tests and benchmarks.

An episode consists of two tool calls and an answer: add a number, add another one, state the total.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.env import EpisodeLimits, Observation, VisEnv
from visenv.errors import ServiceError
from visenv.grammar import KeyValueGrammar, ParsedTurn, ToolCall
from visenv.registration import register as register_env
from visenv.rewards import RewardTerm, RewardWrapper, of_log
from visenv.teacher import Teacher
from visenv.tools.base import Arguments, Store, Tool, ToolResult
from visenv.types import EventLog, GroundTruth, Message, Sample, TurnRequest
from visenv.types.ground_truth import STRICT

REACHED: defaultdict[str, threading.Event] = defaultdict(threading.Event)
"""Set by a call of kind ``"wait"`` when it begins to wait; by name of the gate."""

OPENED: defaultdict[str, threading.Event] = defaultdict(threading.Event)
"""Set by a test to let that call continue; by name of the gate. Works for threads of one
process."""

ENV_ID = "visenv-testing/Adder-v0"

_ASK = TurnRequest(stop=KeyValueGrammar.stop)


class FaultyArguments(Arguments):
    """Holds the arguments of `FaultyTool`."""

    kind: Literal["service", "error", "wait", "exit"] = Field(description="how to fail")
    gate: str = Field(default="", description="the gate to wait at")


class FaultyTool(Tool[FaultyArguments]):
    """Raises, waits at a gate (forever if it is never opened), or ends its process."""

    name = "trouble"
    description = "Fails."
    arguments = FaultyArguments

    @override
    def call(self, arguments: FaultyArguments, store: Store) -> ToolResult:
        """Fail or wait, as the arguments request."""
        match arguments.kind:
            case "service":
                raise ServiceError("search", "the server is down")
            case "error":
                raise RuntimeError("a bug in a tool")
            case "exit":
                os._exit(3)
            case "wait":
                REACHED[arguments.gate].set()
                OPENED[arguments.gate].wait()
                return ToolResult((f"passed {arguments.gate}",))

    @override
    def example(self) -> FaultyArguments:
        return FaultyArguments(kind="service")

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> FaultyArguments:
        """Return arguments for a failing service; other failures are never random."""
        return FaultyArguments(kind="service")


class AddArguments(Arguments):
    """Holds the arguments of `Add`."""

    amount: int = Field(description="an integer from 0 to 99", ge=0, le=99)


class Add(Tool[AddArguments]):
    """Adds to a running total.

    Args:
        latency: Seconds that each call sleeps, to simulate a tool that waits for a server.
    """

    name = "add"
    description = "Adds an amount to the total, which begins at 0, and returns the new total."
    arguments = AddArguments

    def __init__(self, latency: float = 0.0) -> None:
        self._latency = latency
        self._total = 0

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        self._total = 0

    @override
    def call(self, arguments: AddArguments, store: Store) -> ToolResult:
        if self._latency:
            time.sleep(self._latency)
        self._total += arguments.amount
        return ToolResult((f"total {self._total}",), {"total": self._total})

    @override
    def example(self) -> AddArguments:
        return AddArguments(amount=7)

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> AddArguments:
        return AddArguments(amount=int(rng.integers(100)))


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class SumTruth(GroundTruth):
    """Holds the ground truth of a sum.

    Attributes:
        add: The numbers to add, in order.
    """

    add: tuple[int, int]


class Sums:
    """Generates pairs of numbers, without bound."""

    ground_truth = SumTruth

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return two numbers from 0 to 99."""
        first, second = divmod(int(rng.integers(10_000)), 100)
        name = f"{first}+{second}"
        question = f"Add {first}, then {second}, and say the total."
        truth = SumTruth(add=(first, second))
        return Sample(name, question, (), (str(first + second),), "sum", truth)


@dataclasses.dataclass(frozen=True)
class StatesMore(Teacher["Adder"]):
    """States a total that is too large.

    Attributes:
        most: The largest error at strength 1; the error is uniform from 0.
    """

    summary: ClassVar[str] = "States a total that is too large by a random number from 0 to 2."
    most: int = 2

    @override
    def turn(self, env: Adder, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        error = round(self.strength * int(rng.integers(self.most + 1)))
        return turn if turn.answer is None else turn._replace(answer=str(int(turn.answer) + error))


class Adder(VisEnv):
    """Asks for two additions, then for the answer; the arguments are those of `VisEnv`."""

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"states_more": StatesMore}
    )

    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", (self.sample.question, *self.sample.images))]

    @override
    def turn_request(self) -> TurnRequest:
        return _ASK

    @override
    def task_score(self) -> float:
        return float(self.log.answer in self.sample.answers)

    @override
    def oracle_turn(self) -> ParsedTurn:
        numbers = self.sample.truth_as(SumTruth).add
        if self.turn < len(numbers):
            return ParsedTurn("add", (ToolCall("add", {"amount": numbers[self.turn]}),))
        return ParsedTurn("say", answer=self.sample.answers[0])

    @override
    def metrics(self) -> dict[str, float]:
        return {"accuracy": self.episode_score}


def make(
    *,
    latency: float = 0.0,
    trouble: bool = False,
    turns: int = 4,
    invalid_actions: int | None = None,
    render_mode: str | None = None,
    on_abort: Literal["truncate", "raise"] = "truncate",
) -> gym.Env[Observation, str]:
    """Make the environment with its reward: 0.8 x correct answer + 0.2 x tool used.

    Args:
        latency: Seconds that each tool call sleeps.
        trouble: Whether to add the tool `FaultyTool`, which fails as the policy requests.
        turns: Maximum number of turns of an episode.
        invalid_actions: The number of invalid actions that ends an episode; None sets no limit.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """
    tools: list[Tool[Any]] = [Add(latency)]
    if trouble:
        tools.append(FaultyTool())
    env = Adder(
        source=Sums(),
        grammar=KeyValueGrammar(),
        tools=tools,
        limits=EpisodeLimits(turns, invalid_actions),
        render_mode=render_mode,
        on_abort=on_abort,
    )
    terms = (
        RewardTerm("correct", 0.8, of_log(_correct), "1 if the answer is right, else 0."),
        RewardTerm("tool", 0.2, of_log(_tool_used), "1 if a tool call succeeded, else 0."),
    )
    return RewardWrapper(env, terms)


def register() -> str:
    """Register the environment with Gymnasium in the same way as those of visenv; return its id."""
    if ENV_ID not in gym.registry:
        register_env(ENV_ID, "visenv.testing.toy:make")
    return ENV_ID


def _correct(log: EventLog, sample: Sample) -> float:
    return float(log.answer in sample.answers)


def _tool_used(log: EventLog, sample: Sample) -> float:
    return float(any(call.ok for call in log.tool_calls))
