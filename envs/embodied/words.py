"""Lists the words of the preset ``tiny``, for the tokenizer of a tiny model."""

from __future__ import annotations

from collections.abc import Iterator

from visenv.grammar.plan import PLAN_KEY, TEXT_KEYS
from visenv.words import REPEATS, ROLES, TokenizerWords, doubled

from . import prompts
from .presets import TINY_FIXTURES, TINY_TYPES
from .world.fixtures import FIXTURES
from .world.items import COLORS, ITEMS, word_of
from .world.tasks.phrases import TEMPLATES

_PIECES = (
    f'{{"{TEXT_KEYS[0]}": "',
    *(f'", "{key}": "' for key in (*TEXT_KEYS[1:],)),
    f'", "{PLAN_KEY}": [',
    '{"action_id": ',
    ', "action_name": "',
    '"}, ',
    '"}]}',
)
"""The parts of every turn in addition to its texts, ids and names."""


def _texts() -> Iterator[str]:
    for fixture in TINY_FIXTURES:
        yield f"\n0: find a {fixture}"
        yield f"\nInstruction: on the {FIXTURES[fixture].word}"
        yield f"I see {FIXTURES[fixture].word}."
    for kind in ITEMS:
        yield f"\n0: find a {kind}\n0: find a {kind}_2\n0: pick up the {kind}\n"
    for kind in TINY_TYPES:
        for color in COLORS:
            yield f"I see a {color} {word_of(kind)}. I look for a {color} {word_of(kind)}."
    for split in ("train", "eval"):
        for template in TEMPLATES["place"][split]:
            yield template.format(thing="the red mug", dest="on the desk")
    yield prompts.rules("alfred", "brief", "", (12, 4))
    yield from ("\nActions:\n", "put down the object in hand\n", "drop the object in hand\n")
    yield from (prompts.history([""]), prompts.NOW, "The action succeeded.", "The action failed.")
    yield "\nHistory:\nStep 1, action 0, find a Mug_2: The action succeeded."
    yield from ("This is it.", "This is another one.", "I see a room.", "1 actions.", "3 actions.")


def _corpus() -> Iterator[str]:
    texts = [*_texts()]
    for _ in range(REPEATS // 5):
        yield from texts
        yield from doubled((*COLORS, *ROLES, *TINY_FIXTURES, "find", "pick", "put", "drop", "This"))


WORDS = TokenizerWords(_PIECES, _corpus)
