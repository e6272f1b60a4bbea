"""Defines a new environment: turn over one of four cards, then name its color.

    python examples/new_env.py                   # check it against the contract, and play it
    cd examples
    visenv play new_env:mine/Cards-v0            # every command takes module:Id
    visenv validate new_env:Cards                # ... or module:Class

The environment has a procedural source, a tool that returns an image, and an oracle. `register`
also makes the episode pool of `gym.make_vec` available. A package that other people install names
its environments in its pyproject.toml (examples/plugin/).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import gymnasium as gym
import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.env import EpisodeLimits, VisEnv
from visenv.grammar import KeyValueGrammar, ParsedTurn, ToolCall
from visenv.registration import RECORD_TYPES, load, register
from visenv.rollout import EpisodeSpec, play
from visenv.tools import Arguments, Store, Tool, ToolResult
from visenv.types import Image, Message, Sample, TurnRequest

COLORS = {"red": (200, 30, 40), "green": (30, 140, 60), "blue": (40, 70, 200)}


@dataclass(frozen=True)
class CardsTruth:
    """Holds the ground truth of a sample: the colors, and the card of the question."""

    cards: tuple[str, ...]
    asked: int


RECORD_TYPES["CardsTruth"] = "new_env:CardsTruth"  # the name in saved episodes


class CardTable:
    """Generates samples: four face-down cards, and a question about one of them."""

    ground_truth = CardsTruth

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return a sample with random cards."""
        cards = tuple(str(card) for card in rng.choice(list(COLORS), size=4))
        asked = int(rng.integers(1, 5))
        back = Image.from_pixels(np.full((64, 256, 3), 90, np.uint8))
        question = f"Which colour is card {asked}, counted from the left?"
        name = f"{'-'.join(cards)}/{asked}"
        truth = CardsTruth(cards, asked)
        return Sample(name, question, (back,), (cards[asked - 1],), ground_truth=truth)


class CardNumber(Arguments):
    """Defines the arguments of the tool, from which its JSON schema is generated."""

    number: Annotated[int, Field(ge=1, le=4, description="which card to turn over, 1 to 4")]


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
        """Return an image of the front of the card."""
        front = np.full((64, 64, 3), COLORS[self._cards[arguments.number - 1]], np.uint8)
        return ToolResult((Image.from_pixels(front),))

    @override
    def example(self) -> CardNumber:
        """Return the example call of the prompt."""
        return CardNumber(number=2)

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> CardNumber:
        """Return random arguments for the random policy."""
        return CardNumber(number=int(rng.integers(1, 5)))


class Cards(VisEnv):
    """Turn over one card, then answer."""

    ground_truths = (CardsTruth,)

    def __init__(self, render_mode: str | None = None) -> None:
        tools, limits = [TurnOver()], EpisodeLimits(turns=2)
        super().__init__(
            source=CardTable(),
            grammar=KeyValueGrammar(),
            tools=tools,
            limits=limits,
            render_mode=render_mode,
        )

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


register("mine/Cards-v0", "new_env:Cards")


def main() -> None:
    """Check the environment, and play it."""
    from visenv.testing import check_all

    check_all(lambda: gym.make("mine/Cards-v0"))
    episode = asyncio.run(
        play(gym.make("mine/Cards-v0"), load("policy", "oracle")(), EpisodeSpec(seed=0))
    )
    for turn in episode.turns:
        print(*(message.plain() for message in turn.messages), turn.text, sep="\n\n", end="\n\n")
    print(f"reward {episode.reward}")


if __name__ == "__main__":
    main()
