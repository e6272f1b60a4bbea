"""Defines an environment without an oracle, for tests of training: name the color of the image."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from visenv.env import EpisodeLimits, VisEnv
from visenv.grammar import KeyValueGrammar
from visenv.types import Image, Message, Sample, TurnRequest

COLORS = {"red": (200, 30, 40), "green": (30, 140, 60), "blue": (40, 70, 200)}


class Colors:
    """Generates images of one color."""

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return an image of a random color."""
        color = str(rng.choice(list(COLORS)))
        image = Image.from_pixels(np.full((48, 48, 3), COLORS[color], np.uint8))
        return Sample(f"{color}-{rng.integers(1000)}", "Which color?", (image,), (color,))


class NameColor(VisEnv):
    """Asks for the color of an image; the arguments are those of `VisEnv`."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(
            source=Colors(),
            grammar=KeyValueGrammar(),
            limits=EpisodeLimits(turns=1),
            render_mode=render_mode,
        )

    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", (*self.sample.images, f"\n{self.sample.question}"))]

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest("<think>", self.grammar.stop)

    @override
    def task_score(self) -> float:
        return float(self.log.answer in self.sample.answers)

    @override
    def metrics(self) -> dict[str, float]:
        return {"accuracy": self.episode_score}

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        return str(rng.choice(list(COLORS)))


def make(**options: Any) -> NameColor:
    """Make the environment."""
    return NameColor(**options)


class Broken(NameColor):
    """Aborts every episode."""

    @override
    def initial_messages(self) -> list[Message]:
        from visenv.errors import ServiceError

        raise ServiceError("world", "no connection")
