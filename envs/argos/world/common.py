"""Implements the parts that images and videos share: positions of things, tints and samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.worlds.draws import pick

from ..ground_truth import Entailment
from .draw import TINTS
from .presets import SHORTCUT_RATE, Split, WorldPreset
from .things import COLORS, MATERIALS, SHAPES, SIZES, Thing

_TRIES = 80


class Placer:
    """Places things so that they do not cover each other.

    Args:
        rng: The generator.
        preset: The sizes of things.
    """

    def __init__(self, rng: np.random.Generator, preset: WorldPreset) -> None:
        self._rng = rng
        self._preset = preset
        self.things: list[Thing] = []

    def add(self, **given: str) -> Thing:
        """Add a thing with these attributes, and random values for others; return it."""
        rng, preset = self._rng, self._preset
        color = given.get("color") or pick(rng, tuple(COLORS))
        material = given.get("material") or pick(rng, MATERIALS)
        shape = given.get("shape") or pick(rng, SHAPES)
        size = given.get("size") or pick(rng, SIZES)
        radius = preset.radius[SIZES.index(size)]
        x, y = self.place(radius)
        thing = Thing(color, material, shape, size, x, y, radius, radius)
        self.things.append(thing)
        return thing

    def distract(self, shape: str, size: str) -> None:
        """Add things of other shapes; the preset defines their number."""
        low, high = self._preset.distractors
        for _ in range(int(self._rng.integers(low, high + 1))):
            self.add(shape=other(self._rng, SHAPES, shape), size=size)

    def place(self, radius: int) -> tuple[int, int]:
        """Return a center that is far from the other things, if there is enough space."""
        preset = self._preset
        best, most = (preset.width // 2, preset.height // 2), -np.inf
        for _ in range(_TRIES):
            x = int(self._rng.integers(radius + 1, preset.width - radius - 1))
            y = int(self._rng.integers(radius + 1, preset.height - radius - 1))
            room = min(
                (
                    max(abs(x - each.x), abs(y - each.y)) - each.half_width - radius
                    for each in self.things
                ),
                default=1,
            )
            if room > most:
                best, most = (x, y), room
            if room > 1:
                break
        return best


def other(rng: np.random.Generator, options: Sequence[str], *taken: str) -> str:
    """Return one of the options that is not taken."""
    return pick(rng, [option for option in options if option not in taken])


def choose_tint(
    rng: np.random.Generator, answer: str, options: Sequence[str], split: Split
) -> tuple[int, bool]:
    """Return the index of a tint, and whether it was chosen to match the answer.

    In training, the tint matches the answer in 90 % of the scenes; out of distribution it is
    independent of the answer.
    """
    by_answer = split == "train" and rng.random() < SHORTCUT_RATE
    random_tint = int(rng.integers(len(TINTS)))
    return (options.index(answer) % len(TINTS) if by_answer else random_tint), by_answer


def entail(statement: str, options: Sequence[str]) -> tuple[Entailment, ...]:
    """Return for each option the entailment of the statement that contains it."""
    return tuple(
        Entailment(statement=statement.format(answer=option), answer=option) for option in options
    )
