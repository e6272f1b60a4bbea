"""The words of a task: the texts that the tokenizer of a tiny model is trained on.

A family builds a `TokenizerWords` from its own prompts, and `WORDS` of `visenv.registration` names
it. Each word of the task then becomes one token, so that a turn is 20 to 40 tokens long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

REPEATS = 300
"""How often a corpus repeats each text: often enough that a word becomes one token, alone and
after a blank."""

COLORS = (
    "red", "orange", "yellow", "green", "cyan", "blue", "purple", "magenta", "white", "black",
)  # fmt: skip
ROLES = ("system", "user", "assistant")

_TAGS = re.compile(r"(?:</?\w+>)+ ?")


class TokenizerWords(NamedTuple):
    """Holds what a tokenizer is made of.

    Attributes:
        tags: Tags that become one token each, but no special token: a parser must see them, and a
            policy may say them.
        corpus: Returns the texts to learn merges from, the same every time.
    """

    tags: tuple[str, ...]
    corpus: Callable[[], Iterator[str]]


def tags(*names: str) -> tuple[str, ...]:
    """Return the opening and the closing tag of each name."""
    return tuple(f"<{slash}{name}>" for name in names for slash in ("", "/"))


def untagged(text: str) -> str:
    """Return the text without its tags, which are tokens of their own."""
    return _TAGS.sub("", text)


def doubled(words: tuple[str, ...]) -> Iterator[str]:
    """Yield each word alone and after a blank."""
    return (f"{word} {word}" for word in words)
