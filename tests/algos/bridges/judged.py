"""Provides an environment with JSON tool calls, a slow judge, and frames that only viewers see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import gymnasium as gym
import numpy as np
from typing_extensions import override

from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import ServiceError
from visenv.grammar import ParsedTurn, ToolCall, ToolCallGrammar
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper, of_log
from visenv.tools import Arguments, Store, Tool, ToolResult
from visenv.types import EventLog, Image, Message, Sample, TurnRequest, Video


class LookArguments(Arguments):
    """Has no fields."""


def picture(gray: int, side: int = 64) -> Image:
    """Return a gray image."""
    return Image.from_pixels(np.full((side, side, 3), gray, np.uint8))


HIDDEN = picture(200)
"""The frame of each call that only viewers see."""


class Look(Tool[LookArguments]):
    """Shows an image and records it as a hidden frame."""

    name = "look"
    description = "Shows the picture."
    arguments = LookArguments

    @override
    def call(self, arguments: LookArguments, store: Store) -> ToolResult:
        """Return a picture."""
        return ToolResult(("seen", picture(90)), hidden_frames=(Video((HIDDEN,), (0.0,)),))

    @override
    def example(self) -> LookArguments:
        """Return the arguments, which have no fields."""
        return LookArguments()

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> LookArguments:
        """Return the arguments, which have no fields."""
        return LookArguments()


class Colors:
    """Draws one of two samples."""

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return a question about the color."""
        color = ("light", "dark")[int(rng.integers(2))]
        return Sample(color, "Which color?", (picture(30),), (color,))


class Judged(VisEnv):
    """Expects one call of the tool and then the answer; takes the arguments of `VisEnv`."""

    @override
    def initial_messages(self) -> list[Message]:
        """Return the question and its image."""
        return [Message("user", (self.sample.question, *self.sample.images))]

    @override
    def turn_request(self) -> TurnRequest:
        """Return a request that ends at the grammar's stop strings."""
        return TurnRequest(stop=ToolCallGrammar.stop)

    @override
    def task_score(self) -> float:
        """Return 1 for the right color, 0 otherwise."""
        return float(self.log.answer in self.sample.answers)

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Look once, then answer."""
        if self.turn == 0:
            return ParsedTurn(" look ", (ToolCall("look", {}),))
        return ParsedTurn(" so ", answer=self.sample.answers[0])

    @override
    def metrics(self) -> dict[str, float]:
        """Return the number of successful calls."""
        return {"looks": float(sum(call.ok for call in self.log.tool_calls))}


async def brief(sample: Sample) -> None:
    """Judge after a short delay, in which other tasks run."""
    await asyncio.sleep(0.01)


async def away(sample: Sample) -> None:
    """Fail like a judge that has used up its retries."""
    raise ServiceError("judge", "away")


def make(
    *,
    turns: int = 3,
    judge: Callable[[Sample], Awaitable[None]] | None = brief,
    wrap: Callable[[Any], Any] = lambda env: env,
    render_mode: str | None = None,
) -> gym.Env[Any, str]:
    """Make the environment.

    Its reward is 1 for the right answer, plus 0.2 for a call of the tool, plus 0.5 times the share
    of turns with a thought, which a judge measures.

    Args:
        turns: Maximum number of turns in an episode.
        judge: Awaited before the judge returns its value; may raise. With None, this term is
            synchronous.
        wrap: Wraps the environment and its reward in another wrapper.
        render_mode: See `VisEnv`.
    """

    async def judged_thoughts(context: RewardContext) -> float:
        assert judge is not None
        await judge(context.sample)
        return _thoughts(context.log, context.sample)

    env = Judged(
        source=Colors(),
        grammar=ToolCallGrammar(),
        tools=[Look()],
        limits=EpisodeLimits(turns),
        render_mode=render_mode,
    )
    terms = (
        RewardTerm("right", 1.0, of_log(_right)),
        RewardTerm("looked", 0.2, of_log(_looked)),
        RewardTerm("thoughts", 0.5, of_log(_thoughts) if judge is None else judged_thoughts),
    )
    wrapped: gym.Env[Any, str] = wrap(RewardWrapper(env, terms))
    return wrapped


def _thoughts(log: EventLog, sample: Sample) -> float:
    return sum(turn.thought is not None for turn in log.turns) / len(log.turns)


def _looked(log: EventLog, sample: Sample) -> float:
    return float(any(call.ok for call in log.tool_calls))


def _right(log: EventLog, sample: Sample) -> float:
    return float(log.answer in sample.answers)
