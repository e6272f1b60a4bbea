"""Defines `Judge`, a scorer with a prompt and a strict parser of the reply.

Text of a policy is data. In a prompt it is one JSON string without line breaks (`quoted`), or, if a
model must copy from it, a block between two lines that the text cannot contain (`fenced`). Both
have a limit, because a judge reads the text at the expense of the person who runs it. The prompt
says that the text is data.

A parser returns the verdict in the reply or raises `ReplyError`; it never guesses. A thought before
the verdict that ends with ``</think>`` is ignored.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from visenv.errors import ConfigurationError, ServiceError
from visenv.scorers.request import Generate
from visenv.scorers.scorer import Scorer
from visenv.types import Image, Message, Part, Video

LONGEST = 4_000
"""Maximum number of characters of a text that a judge reads; the rest is cut off."""

LONGEST_TRACE = 32_000
"""Maximum number of characters of a reasoning that a model reads or copies from."""

_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029]")

MAX_CHARACTERS = 10_000
"""Maximum length of a verdict; a longer one is refused without parsing."""

_FENCE = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)

T = TypeVar("T")

Content = Part | Sequence[Part]
"""The content of a field of a prompt: text, an image or a video, or several of them in order."""

_RETRY_TEMPERATURE = 0.7

_SHOWN = 200


def quoted(text: str, longest: int = LONGEST) -> str:
    """Return a text as one JSON string in one line, cut to a number of characters.

    Line breaks and quotation marks are escaped, so that the text cannot end the string.
    """
    written = json.dumps(text[:longest], ensure_ascii=False)
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def fenced(text: str, longest: int = LONGEST_TRACE) -> str:
    """Return a text between two lines that are equal and depend on the text, cut to a length.

    A policy cannot write the line into its text, because the line contains the hash of the text.
    """
    cut = text[:longest]
    line = f"=== text {hashlib.sha256(cut.encode('utf-8', 'replace')).hexdigest()[:16]} ==="
    return f"{line}\n{cut}\n{line}"


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


@dataclass(frozen=True)
class Judge(Generic[T]):
    """Requests a verdict from a model, and repeats the request if the reply cannot be parsed.

    A judge is frozen, and can be pickled if its parser can.

    Args:
        scorer: A scorer that answers `Generate`.
        prompt: The user message, with fields in braces, as ``"{image} Is {answer} right?"``.
            Literal braces are doubled.
        parse: Returns the verdict in the reply, or raises `ReplyError` (`visenv.scorers.judge`).
        tries: Maximum number of replies to one question.
        system: The system message, or None.
        max_tokens: Maximum number of tokens of a reply.
        temperature: Sampling temperature of the first reply. Further replies use at least 0.7 and
            other seeds, because a greedy model or the cache would return the same reply again.
        quoted: The fields with text that a policy wrote. They are written as one JSON string and
            cut to `longest` characters (`visenv.scorers.judge`), so that a policy cannot imitate
            the prompt; the prompt should say that they are data.
        longest: Maximum number of characters of a quoted field.

    Raises:
        ConfigurationError: If `tries` or `longest` is below 1, the prompt is not a template of
            plain fields, or `quoted` names another field.
    """

    scorer: Scorer
    prompt: str
    parse: Callable[[str], T]
    tries: int = 3
    system: str | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    quoted: tuple[str, ...] = ()
    longest: int = LONGEST

    def __post_init__(self) -> None:
        if self.tries < 1 or self.longest < 1:
            raise ConfigurationError(
                f"tries and longest must be at least 1, got {self.tries} and {self.longest}."
            )
        unknown = set(self.quoted) - set(_fields(self.prompt))
        if unknown:
            raise ConfigurationError(f"The prompt has no field {sorted(unknown)} to quote.")

    async def ask(self, **fields: Content) -> T:
        """Return the verdict on these fields.

        Args:
            **fields: One value for each field of the prompt.

        Raises:
            ConfigurationError: If the fields are not those of the prompt.
            ServiceError: If the scorer failed, or none of `tries` replies could be parsed.
        """
        messages = self.messages(**fields)
        problem: ReplyError | None = None
        text = ""
        for attempt in range(self.tries):
            temperature = max(self.temperature, _RETRY_TEMPERATURE if attempt else 0.0)
            request = Generate(messages, self.max_tokens, temperature, seed=attempt)
            text = _text(self.scorer, (await self.scorer.score(request)).value)
            try:
                return self.parse(text)
            except ReplyError as error:
                problem = error
        raise ServiceError(
            self.scorer.name,
            f"no usable reply in {self.tries} tries; the last: {problem}; it began "
            f"{text[:_SHOWN]!r}",
        ) from problem

    def messages(self, **fields: Content) -> tuple[Message, ...]:
        """Return the messages of the request.

        Raises:
            ConfigurationError: If the fields are not those of the prompt.
        """
        parts: list[Part] = []
        known = _fields(self.prompt)
        if set(fields) != set(known):
            raise ConfigurationError(
                f"The prompt has the fields {sorted(set(known))}, got {sorted(fields)}."
            )
        for literal, name, _, _ in string.Formatter().parse(self.prompt):
            _add(parts, literal)
            if name is not None:
                _add(parts, self._written(name, fields[name]))
        head = () if self.system is None else (Message("system", (self.system,)),)
        return (*head, Message("user", tuple(parts)))

    def _written(self, name: str, content: Content) -> Content:
        if name not in self.quoted:
            return content
        if not isinstance(content, str):
            raise ConfigurationError(f"The quoted field {name!r} must be a text.")
        return quoted(content, self.longest)


def _fields(prompt: str) -> list[str]:
    try:
        pieces = list(string.Formatter().parse(prompt))
    except ValueError as error:
        raise ConfigurationError(f"The prompt is not a template: {error}.") from error
    names = [name for _, name, _, _ in pieces if name is not None]
    odd = [name for name in names if not name.isidentifier()]
    if odd or any(form or conversion for _, _, form, conversion in pieces):
        raise ConfigurationError(
            f"A prompt's fields are plain names such as {{question}}; got {odd or prompt!r}. "
            "Literal braces are doubled."
        )
    return names


def _add(parts: list[Part], content: Content) -> None:
    """Append text and images; adjacent texts are joined."""
    if isinstance(content, (str, Image, Video)):
        if isinstance(content, str) and parts and isinstance(parts[-1], str):
            parts[-1] += content
        elif content != "":
            parts.append(content)
        return
    for part in content:
        _add(parts, part)


def _text(scorer: Scorer, value: Any) -> str:
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise ServiceError(scorer.name, f"expected {{'text': ...}}, got {str(value)[:_SHOWN]!r}")
    return text
