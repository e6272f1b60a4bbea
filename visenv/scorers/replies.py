"""Parses the reply of a judge strictly.

A parser returns the verdict in the reply or raises `ReplyError`; it never guesses. A thought before
the verdict that ends with ``</think>`` is ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MAX_CHARACTERS = 10_000
"""Maximum length of a verdict; a longer one is refused without parsing."""

_FENCE = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)


class ReplyError(ValueError):
    """Raised when a reply does not contain the requested verdict."""


@dataclass(frozen=True)
class JsonScore:
    """Parses a number from a JSON object with a key, such as ``{"score": 0.75}``.

    Further keys are ignored: many judges also give a reason, as ``{"score": 0.75, "why": "…"}``. A
    Markdown fence around the object is allowed, but no other text.

    Args:
        key: The key of the number.
        low: The smallest allowed number.
        high: The largest allowed number.
        values: The allowed numbers; if empty, all numbers from `low` to `high` are allowed.
    """

    key: str = "score"
    low: float = 0.0
    high: float = 1.0
    values: tuple[float, ...] = ()

    def __call__(self, text: str) -> float:
        """Return the number.

        Raises:
            ReplyError: If the reply is not such an object.
        """
        found = json_reply(text)
        if self.key not in found:
            raise ReplyError(f"expected the key {self.key!r}, got {_shown(list(found))}")
        value = found[self.key]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ReplyError(f"expected a number, got {_shown(value)}")
        if not self.low <= value <= self.high:  # NaN fails every comparison
            raise ReplyError(f"expected a number from {self.low} to {self.high}, got {value}")
        if self.values and value not in self.values:
            raise ReplyError(f"expected one of {self.values}, got {value}")
        return float(value)


@dataclass(frozen=True)
class OneOf:
    """Parses one of several words, in any case, with or without a final full stop.

    Args:
        choices: The words.
    """

    choices: tuple[str, ...]

    def __call__(self, text: str) -> str:
        """Return the choice in the spelling of `choices`.

        Raises:
            ReplyError: If the reply is not one of them.
        """
        said = verdict_text(text).removesuffix(".").casefold()
        for choice in self.choices:
            if said == choice.casefold():
                return choice
        raise ReplyError(f"expected one of {self.choices}, got {_shown(text)}")


@dataclass(frozen=True)
class YesNo:
    """Parses yes as True and no as False, in any case, with or without a final full stop."""

    def __call__(self, text: str) -> bool:
        """Return whether the reply is yes.

        Raises:
            ReplyError: If the reply is neither yes nor no.
        """
        return OneOf(("yes", "no"))(text) == "yes"


def verdict_text(text: str) -> str:
    """Return the reply after its thought, without leading and trailing whitespace.

    Raises:
        ReplyError: If the rest is empty or has more than `MAX_CHARACTERS` characters.
    """
    said = text.rpartition("</think>")[2].strip()
    if not said:
        raise ReplyError("an empty reply")
    if len(said) > MAX_CHARACTERS:
        raise ReplyError(f"a reply of {len(said):,} characters, more than {MAX_CHARACTERS:,}")
    return said


def json_reply(text: str) -> dict[str, Any]:
    """Return the JSON object in a reply, which must contain exactly one.

    A Markdown fence around the object is allowed, but no other text. Its strings may contain line
    breaks, as the reasons of judges often do.

    Raises:
        ReplyError: If the reply is anything else, a key occurs twice, or a number is not finite.
    """
    said = verdict_text(text)
    fenced = _FENCE.fullmatch(said)
    try:
        found = json.loads(
            fenced[1] if fenced else said,
            parse_constant=_refuse,
            object_pairs_hook=_unique,
            strict=False,
        )
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"not a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise ReplyError(f"expected a JSON object, got {_shown(found)}")
    return found


def _refuse(constant: str) -> float:
    raise ReplyError(f"{constant} is not a number")


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ReplyError(f"the key {key!r} occurs twice")
        if isinstance(value, float) and not math.isfinite(value):
            raise ReplyError("a number that is too large")
        found[key] = value
    return found


def _shown(value: object) -> str:
    return repr(value)[:100]
