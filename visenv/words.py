"""Defines the words of a task: the texts on which the tokenizer of a tiny model is trained.

A family builds a `TokenizerWords` from its own prompts, which `WORDS` of `visenv.registration`
lists. Each word of the task then becomes one token, so that a turn is 20 to 40 tokens long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

REPEATS = 300
"""Number of times that a corpus repeats each text: enough that a word becomes one token, both alone
and after a space.
"""

COLORS = (
    "red", "orange", "yellow", "green", "cyan", "blue", "purple", "magenta", "white", "black",
)  # fmt: skip
ROLES = ("system", "user", "assistant")

_TAGS = re.compile(r"(?:</?\w+>)+ ?")


class TokenizerWords(NamedTuple):
    """Holds the training data of a tokenizer.

    Attributes:
        tags: Tags that become one token each. They are not special tokens, because a parser must
            see them and a policy may write them.
        corpus: Returns the texts to learn merges from; the same texts in every call.
    """

    tags: tuple[str, ...]
    corpus: Callable[[], Iterator[str]]


def tags(*names: str) -> tuple[str, ...]:
    """Return the opening and the closing tag of each name."""
    return tuple(f"<{slash}{name}>" for name in names for slash in ("", "/"))


def untagged(text: str) -> str:
    """Return the text without its tags, which are separate tokens."""
    return _TAGS.sub("", text)


def doubled(words: tuple[str, ...]) -> Iterator[str]:
    """Yield each word alone and after a space."""
    return (f"{word} {word}" for word in words)
