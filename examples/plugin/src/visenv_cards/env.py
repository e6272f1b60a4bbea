"""Defines the environment, with its tool and its reward."""

from __future__ import annotations

from typing import Annotated, Literal

import gymnasium as gym
import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.data.open import open_data
from visenv.data.source import Source
from visenv.env import EpisodeLimits, Observation, VisEnv
from visenv.grammar import KeyValueGrammar, ParsedTurn, ToolCall
from visenv.presets import check_choice
from visenv.rewards import RewardTerm, RewardWrapper, of_log
from visenv.tools import Arguments, Store, Tool, ToolResult
from visenv.types import EventLog, Image, Message, Sample, TurnRequest

from .world import CARDS, COLORS, CardsTruth, CardTable


class CardNumber(Arguments):
    """Defines the arguments of the tool, from which its JSON schema is generated."""

    number: Annotated[int, Field(ge=1, le=CARDS, description="which card to turn over")]


class TurnOver(Tool[CardNumber]):
    """Shows the front of a card."""

    name = "turn_over"
    description = "Turns one card over and shows it."
    arguments = CardNumber

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        self._cards = sample.truth_as(CardsTruth).cards

    @override
    def call(self, arguments: CardNumber, store: Store) -> ToolResult:
        """Return an image of the front."""
        front = np.full((32, 32, 3), COLORS[self._cards[arguments.number - 1]], np.uint8)
        return ToolResult((Image.from_pixels(front),))

    @override
    def example(self) -> CardNumber:
        """Return the call of the prompt."""
        return CardNumber(number=2)

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> CardNumber:
        """Return a call of the random policy."""
        return CardNumber(number=int(rng.integers(1, CARDS + 1)))


class Cards(VisEnv):
    """Turn over one card, then name the color of the card that the question is about.

    ### Action space
    Texts in the `key: value` grammar: a thought, then a call of `turn_over` or the answer.

    ### Reward
    0.8 for the right color, 0.2 for a card that was turned over. With `reward="outcome"` 1 for the
    right color.

    ### Episode end
    The episode ends with an answer, or after two turns.
    """

    ground_truths = (CardsTruth,)

    @override
    def initial_messages(self) -> list[Message]:
        """Return the rules, the backs of the cards and the question."""
        rules = Message("system", (self.grammar.instructions(list(self.tools.values())),))
        return [rules, Message("user", (*self.sample.images, f"\n{self.sample.question}"))]

    @override
    def turn_request(self) -> TurnRequest:
        """Return a request in which each turn begins with a thought."""
        return TurnRequest("<think>", self.grammar.stop)

    @override
    def task_score(self) -> float:
        """Return 1 for the right color."""
        return float(self.log.answer in self.sample.answers)

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Turn over the right card, then name it."""
        if self.turns_left > 1:
            call = ToolCall("turn_over", {"number": self.sample.truth_as(CardsTruth).asked})
            return ParsedTurn(" I look at the card. ", calls=(call,))
        return ParsedTurn(" I saw it. ", answer=self.sample.answers[0])

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        return str(rng.choice(list(COLORS)))

    @override
    def metrics(self) -> dict[str, float]:
        """Return whether the answer was right."""
        return {"accuracy": self.episode_score}


def make(
    *,
    data: str | Source = "procedural",
    reward: Literal["paper", "outcome"] = "paper",
    render_mode: str | None = None,
    on_abort: Literal["truncate", "raise"] = "truncate",
) -> gym.Env[Observation, str]:
    """Make ``cards/Cards-v0``.

    Args:
        data: ``"procedural"``, ``"decks:<folder>"`` or a `Source`.
        reward: ``"paper"`` or ``"outcome"``.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
    """
    check_choice("reward", reward, ("paper", "outcome"))
    env = Cards(
        source=_source(data),
        grammar=KeyValueGrammar(),
        tools=[TurnOver()],
        limits=EpisodeLimits(turns=2),
        render_mode=render_mode,
        on_abort=on_abort,
    )
    if reward == "outcome":
        return env
    terms = (
        RewardTerm("correct", 0.8, of_log(_correct), "1 for the right color."),
        RewardTerm("looked", 0.2, of_log(_looked), "1 if the card was turned over."),
    )
    return RewardWrapper(env, terms)


def _source(data: str | Source) -> Source:
    if not isinstance(data, str):
        return data
    return CardTable() if data == "procedural" else open_data(data)


def _correct(log: EventLog, sample: Sample) -> float:
    return float(log.answer in sample.answers)


def _looked(log: EventLog, sample: Sample) -> float:
    return float(any(call.ok for call in log.tool_calls))
