"""Defines a policy that turns over the card of the question and reads its color."""

from __future__ import annotations

import re

import numpy as np
from typing_extensions import override

from visenv.policy import Policy, Session
from visenv.types import Image, Reply, Sampling, TurnRequest, all_images

from .world import COLORS


class CardSession(Session):
    """Holds the random generator of an episode."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng = rng


class CardCounter(Policy[CardSession]):
    """Plays by rules, and gives a random answer in a share of the episodes.

    Args:
        mistakes: The share of episodes with a random answer, 0 to 1.
    """

    def __init__(self, mistakes: float = 0.0) -> None:
        if not 0 <= mistakes <= 1:
            raise ValueError(f"mistakes must be between 0 and 1, got {mistakes}")
        self.mistakes = mistakes

    @override
    def open(self, seed: int) -> CardSession:
        return CardSession(np.random.default_rng(seed))

    @override
    async def respond(
        self, session: CardSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        images = all_images(session.messages)
        if len(images) == 1:
            question = session.messages[-1].plain()
            number = re.findall(r"card (\d+)", question)[-1]
            text = f"<think> Look. </think><tool>\nname: turn_over\nnumber: {number}\n</tool>"
        else:
            guess = session.rng.random() < self.mistakes
            color = _any_color(session.rng) if guess else _color(images[-1])
            text = f"<think> It is {color}. </think><answer>{color}</answer>"
        reply = Reply.of_text(text)
        session.said(reply)
        return reply


def _color(image: Image) -> str:
    pixel = tuple(int(value) for value in image.pixels[0, 0])
    return next(name for name, value in COLORS.items() if value == pixel)


def _any_color(rng: np.random.Generator) -> str:
    return str(rng.choice(list(COLORS)))
