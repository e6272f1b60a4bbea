"""Tools: what a policy can call, and the store of named texts and images they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from visenv.errors import ToolError
from visenv.types import Image, Part, Sample

_SHOWN = 80


class Arguments(BaseModel):
    """Base of every tool's argument model: its JSON schema is the tool's schema."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
StoredT = TypeVar("StoredT")


class ToolResult(NamedTuple):
    """What a tool returns.

    Attributes:
        parts: Texts and images, in reading order; the environment names and stores the images.
        detail: JSON-like facts for the event log.
    """

    parts: tuple[Part, ...]
    detail: Mapping[str, Any] = {}


class Store:
    """The episode's memory map: texts and images by logical name."""

    __slots__ = ("_counts", "images", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.images: dict[str, Image] = {}
        self._counts: dict[str, int] = {}

    def add_image(self, prefix: str, image: Image) -> str:
        """Store an image under the next free ``f"{prefix}{k}"``, k from 1; return the name."""
        count = self._counts.get(prefix, 0) + 1
        self._counts[prefix] = count
        name = f"{prefix}{count}"
        self.images[name] = image
        return name

    def image(self, name: str) -> Image:
        """The image of that name.

        Raises:
            ToolError: If there is none; lists what there is.
        """
        return _find("image", name, self.images)

    def text(self, name: str) -> str:
        """The text of that name.

        Raises:
            ToolError: If there is none; lists what there is.
        """
        return _find("text", name, self.texts)


class Tool(Generic[ArgumentsT]):
    """Base class of tools. A subclass sets the three class attributes and writes `call`.

    Attributes:
        name: What the policy calls it.
        description: One paragraph for the prompt.
        arguments: The pydantic model of its arguments.
    """

    name: str
    description: str
    arguments: type[ArgumentsT]

    def open(self, sample: Sample, store: Store) -> None:
        """Prepare for an episode."""

    def call(self, arguments: ArgumentsT, store: Store) -> ToolResult:
        """Do the work.

        Raises:
            ToolError: If the call must be refused; the text is shown to the policy.
            ServiceError: If something the tool needs failed beyond its retries.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what `open` took."""

    def example(self) -> ArgumentsT:
        """Arguments to show in the prompt."""
        raise NotImplementedError

    def random_arguments(self, rng: np.random.Generator, store: Store) -> ArgumentsT:
        """Arguments a policy that knows nothing might pass."""
        raise NotImplementedError

    def run(self, raw: Mapping[str, Any], store: Store) -> ToolResult:
        """Check the arguments against the model, then `call`.

        Raises:
            ToolError: If they do not fit, saying what was expected and what was given.
        """
        try:
            arguments = self.arguments(**raw)
        except ValidationError as error:
            raise ToolError(complaint(self.name, self.arguments, error)) from None
        return self.call(arguments, store)


def complaint(name: str, arguments: type[Arguments], error: ValidationError) -> str:
    """What is wrong with a call: what `name` takes, and what was given instead."""
    expected = ", ".join(arguments.model_fields) or "no arguments"
    problems = "; ".join(
        f"{'.'.join(str(step) for step in problem['loc']) or 'arguments'}: {problem['msg']}"
        f" (got {shown(problem['input'])})"
        for problem in error.errors(include_url=False, include_context=False)[:4]
    )
    return f"{name} takes {expected}. {problems}."


def _find(what: str, name: str, there: Mapping[str, StoredT]) -> StoredT:
    if name not in there:
        names = ", ".join(there) or f"no {what}"
        raise ToolError(f"There is no {what} called {shown(name)}. Available: {names}.")
    return there[name]


def shown(value: object) -> str:
    """A value as an error may echo it: escaped to ASCII and cut short."""
    try:
        text = ascii(value)
    except Exception:  # noqa: BLE001 - a foreign __repr__, or an integer too long to print
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
