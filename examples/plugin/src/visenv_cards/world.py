"""Defines the ground truth of a deal and the procedural source."""

from __future__ import annotations

import numpy as np
from pydantic.dataclasses import dataclass

from visenv.types import GroundTruth, Image, Sample
from visenv.types.ground_truth import STRICT

COLORS = {"red": (200, 30, 40), "green": (30, 140, 60), "blue": (40, 70, 200)}
CARDS = 4


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class CardsTruth(GroundTruth):
    """Holds the ground truth of a deal.

    Attributes:
        cards: The colors of the cards, from the left.
        asked: The number of the card that the question is about, from 1.
    """

    cards: tuple[str, ...]
    asked: int


class CardTable:
    """Generates deals of four face-down cards, and a question about one of them."""

    ground_truth = CardsTruth

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return a new deal."""
        cards = [str(color) for color in rng.choice(list(COLORS), size=CARDS)]
        return deal(cards, int(rng.integers(1, CARDS + 1)))


def deal(cards: list[str], asked: int, name: str = "") -> Sample:
    """Return the sample of a deal, with an image of the backs of the cards."""
    truth = CardsTruth(cards=tuple(cards), asked=asked)
    return Sample(
        name or f"{'-'.join(cards)}/{asked}",
        f"Which color is card {asked}, counted from the left?",
        (Image.from_pixels(np.full((32, 32 * len(cards), 3), 90, np.uint8)),),
        (cards[asked - 1],),
        kind="cards",
        ground_truth=truth,
    )
