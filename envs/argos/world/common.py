"""Implements the parts that images and videos share: positions of things, tints and samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.worlds.draws import pick, shuffled

from .draw import TINTS
from .presets import SHORTCUT_RATE, Split, WorldPreset
from .things import MATERIALS, SIZES, Thing

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
        self.behind: list[Thing] = []

    def add(self, **given: str) -> Thing:
        """Add a thing with these attributes, and random values for others; return it."""
        thing = self._draw(given, is_free=True)
        self.things.append(thing)
        return thing

    def _draw(self, given: dict[str, str], is_free: bool) -> Thing:
        rng, preset = self._rng, self._preset
        color = given.get("color") or pick(rng, preset.colors)
        material = given.get("material") or pick(rng, MATERIALS)
        shape = given.get("shape") or pick(rng, preset.shapes)
        size = given.get("size") or pick(rng, SIZES)
        radius = preset.radius[SIZES.index(size)]
        x, y = self.place(radius) if is_free else self._anywhere(radius)
        return Thing(color, material, shape, size, x, y, radius, radius)

    def distract(self, *taken: str, size: str) -> None:
        """Add things of other shapes behind the others, which may cover them in part.

        The preset defines their number.
        """
        low, high = self._preset.distractors
        for _ in range(int(self._rng.integers(low, high + 1))):
            shape = other(self._rng, self._preset.shapes, *taken)
            self.behind.append(self._draw({"shape": shape, "size": size}, is_free=False))

    def layers(self) -> tuple[Thing, ...]:
        """Return all things from back to front; those that do not cover each other are shuffled."""
        return (*self.behind, *shuffled(self._rng, self.things))

    def place(self, radius: int) -> tuple[int, int]:
        """Return a center that is far from the other things, if there is enough space."""
        preset = self._preset
        best, most = (preset.width // 2, preset.height // 2), -np.inf
        for _ in range(_TRIES):
            x, y = self._anywhere(radius)
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

    def _anywhere(self, radius: int) -> tuple[int, int]:
        x = int(self._rng.integers(radius + 1, self._preset.width - radius - 1))
        return x, int(self._rng.integers(radius + 1, self._preset.height - radius - 1))


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
