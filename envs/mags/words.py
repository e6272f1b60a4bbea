"""Lists the words of the tiny presets, for the tokenizer of a tiny model."""

from __future__ import annotations

import random
from collections.abc import Iterator

from visenv.words import COLORS, REPEATS, ROLES, TokenizerWords, doubled, tags
from visenv.worlds.scenes import KINDS

from .prompts import NO_ZOOM, second_thought, thought
from .tools import ALL_REJECTED, NOT_SHOWN

_VALUES = KINDS["colour"].options
_TEXTS = (
    *(f"\nHow many signs have {value} stripes?" for value in _VALUES),
    *(
        f"\nIs the sign with {value} stripes {relation} the sign with {value} stripes?"
        for value in _VALUES
        for relation in ("to the left of", "above")
    ),
    *(f"\nWhat color are the stripes on the {color} square sign?" for color in COLORS),
    thought("brief"),
    second_thought("brief"),
    NO_ZOOM,
    NOT_SHOWN,
    ALL_REJECTED,
    "Error: ",
)


def _corpus() -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(REPEATS // 5):
        yield from _TEXTS
        yield from doubled((*COLORS, *ROLES, "yes", "no", "unknown"))
    for _ in range(REPEATS):
        boxes = [[8 * rng.randrange(13) for _ in range(4)] for _ in range(rng.randint(1, 3))]
        yield f"{boxes}"
        yield f"crop_{rng.randint(1, 4)}:\n"


WORDS = TokenizerWords(tags("think", "zoom", "rethink", "answer"), _corpus)
