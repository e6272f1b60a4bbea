"""Defines `Judge`, a scorer with a prompt and a strict parser of the reply."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from visenv.errors import ConfigurationError, ServiceError
from visenv.scorers.quoting import LONGEST, quoted
from visenv.scorers.replies import ReplyError
from visenv.scorers.request import Generate
from visenv.scorers.scorer import Scorer
from visenv.types import Image, Message, Part, Video

T = TypeVar("T")

Content = Part | Sequence[Part]
"""The content of a field of a prompt: text, an image or a video, or several of them in order."""

_RETRY_TEMPERATURE = 0.7
_SHOWN = 200


@dataclass(frozen=True)
class Judge(Generic[T]):
    """Requests a verdict from a model, and repeats the request if the reply cannot be parsed.

    A judge is frozen, and can be pickled if its parser can.

    Args:
        scorer: A scorer that answers `Generate`.
        prompt: The user message, with fields in braces, as ``"{image} Is {answer} right?"``.
            Literal braces are doubled.
        parse: Returns the verdict in the reply, or raises `ReplyError` (`visenv.scorers.replies`).
        tries: Maximum number of replies to one question.
        system: The system message, or None.
        max_tokens: Maximum number of tokens of a reply.
        temperature: Sampling temperature of the first reply. Further replies use at least 0.7 and
            other seeds, because a greedy model or the cache would return the same reply again.
        quoted: The fields with text that a policy wrote. They are written as one JSON string and
            cut to `longest` characters (`visenv.scorers.quoting`), so that a policy cannot imitate
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
