"""Lists the words of the tiny presets, for the tokenizer of a tiny model."""

from __future__ import annotations

import random
from collections.abc import Iterator

from visenv.words import REPEATS, ROLES, TokenizerWords, doubled, tags

from .prompts import anchor
from .world.things import COLORS, SHAPES

_COLORS = tuple(COLORS)


def _corpus() -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(REPEATS):
        color, other = rng.sample(_COLORS, 2)
        shape = rng.choice(SHAPES)
        x, y = rng.randrange(96), rng.randrange(96)
        yield f"What color is the {shape}? Which color does the {shape} turn?"
        yield f' Here: <point x="{x}" y="{y}" alt="{color} {shape}">{color} {shape}</point>.'
        yield f" The {shape} is {other}. The {shape} is {other} now."
        yield f" From frame {x % 8 + 1} to frame {y % 8 + 1}, the {color} {shape} turns {other}."
        yield f" in frame {x % 8 + 1}. {anchor(x % 8, x % 8 / 2)} {anchor(y % 8, y % 8 / 2)}\n"
        yield from doubled((*_COLORS, *SHAPES, *ROLES, "Error"))


WORDS = TokenizerWords(tags("think", "answer"), _corpus)
