"""Lists the words of ZoomVQA's tiny preset, for the tokenizer of a tiny model."""

from __future__ import annotations

import random
from collections.abc import Iterator

from visenv.words import COLORS, REPEATS, ROLES, TokenizerWords, doubled, tags
from visenv.worlds.scenes import KINDS

from .prompts import looked, looking
from .tools import INPUT_IMAGE, KeypointZoom

_WORDS = (
    *COLORS, "square", "round", "diamond", *ROLES, "left", "right", "yes", "no", "unknown",
)  # fmt: skip
_SIGNS = ("orange square", "red round", "blue diamond", "white square")
_THOUGHTS = (looking("brief"), looked("brief"))
_TEXTS = (
    *(
        kind.question.format(sign=f"the {sign} sign")
        for kind, sign in zip(KINDS.values(), _SIGNS, strict=True)
    ),
    *(text for thought in _THOUGHTS for text in (thought.strip(), thought)),
    "Error: ",
)


def _corpus() -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(REPEATS):
        yield from _TEXTS
        yield from doubled(_WORDS)
        yield (
            f"\nname: {KeypointZoom.name}\nkeypoint: [{rng.randrange(96)}, {rng.randrange(96)}]\n"
        )
        yield f" {INPUT_IMAGE} \n tool_result_{rng.randint(1, 9)} \n"


WORDS = TokenizerWords(tags("think", "tool", "answer", "result", "image_name"), _corpus)
