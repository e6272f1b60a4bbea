"""Defines tools that a policy can call, and the store of named texts and images that they share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from visenv import background
from visenv.errors import ServiceError, ToolError
from visenv.types import Image, Part, Sample, Video
from visenv.types.empty import EMPTY

_SHOWN = 80


class Arguments(BaseModel):
    """Base class of the argument models of all tools: its JSON schema is the tool's schema."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)

StoredT = TypeVar("StoredT")


class ToolResult(NamedTuple):
    """Holds the result of a tool call.

    Attributes:
        parts: Texts, images and videos in reading order; the environment names and stores the
            images.
        detail: JSON-like facts for the event log.
        ok: Whether the call succeeded. A call that fails in the world of the task (a simulator
            refuses an action) also has a result: the policy sees it, and the call counts as failed.
        reason: The reason why the call failed, ``""`` if it succeeded.
        env_steps: Steps of the environment that the call used (`EpisodeLimits.env_steps` counts
            them).
        hidden_frames: Videos for viewers, which the policy does not see.
    """

    parts: tuple[Part, ...]
    detail: Mapping[str, Any] = EMPTY
    ok: bool = True
    reason: str = ""
    env_steps: int = 0
    hidden_frames: tuple[Video, ...] = ()


class Store:
    """Holds the texts and images of an episode by name."""

    __slots__ = ("_counts", "images", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.images: dict[str, Image] = {}
        self._counts: dict[str, int] = {}

    def add_image(self, prefix: str, image: Image) -> str:
        """Store an image with the next free name ``f"{prefix}{k}"``, k from 1; return the name."""
        count = self._counts.get(prefix, 0) + 1
        self._counts[prefix] = count
        name = f"{prefix}{count}"
        self.images[name] = image
        return name

    def image(self, name: str) -> Image:
        """Return the image of that name.

        Raises:
            ToolError: If there is none; the message lists the available names.
        """
        return _find("image", name, self.images)

    def text(self, name: str) -> str:
        """Return the text of that name.

        Raises:
            ToolError: If there is none; the message lists the available names.
        """
        return _find("text", name, self.texts)

    def replace_image(self, old: Image, new: Image) -> None:
        """Replace `old` by `new` under all its names."""
        for name, image in self.images.items():
            if image is old:
                self.images[name] = new


class Tool(Generic[ArgumentsT]):
    """Base class of tools. A subclass sets the three class attributes and implements `call`.

    The environment calls `open` before its first episode and `close` when it is closed; in between,
    each episode begins with `reset` and ends with `end_episode`. A simulator or a connection that
    `open` starts therefore remains open between episodes. Only a tool that raised `ServiceError` is
    closed after the episode and opened again for the next one.

    Attributes:
        name: The name by which the policy calls it.
        description: One paragraph for the prompt.
        arguments: The pydantic model of the arguments.
    """

    name: str
    description: str
    arguments: type[ArgumentsT]

    def open(self) -> None:
        """Acquire the resources that the tool needs for all episodes."""

    def reset(self, sample: Sample, store: Store) -> None:
        """Prepare for an episode."""

    def call(
        self, arguments: ArgumentsT, store: Store
    ) -> ToolResult | Coroutine[Any, Any, ToolResult]:
        """Execute a call. A subclass may implement it as an ``async def``.

        An asynchronous call runs on the event loop of `visenv.background`. A plain `step` waits for
        it; a `Collector` plays other episodes in the meantime.

        Raises:
            ToolError: If the tool rejects the call; the text is shown to the policy.
            ServiceError: If a service that the tool needs failed after all retries.
        """
        raise NotImplementedError

    def end_episode(self) -> None:
        """Release the resources that `reset` acquired."""

    def close(self) -> None:
        """Release the resources that `open` acquired. The tool can be opened again."""

    def example(self) -> ArgumentsT:
        """Return example arguments for the prompt."""
        raise NotImplementedError

    def random_arguments(self, rng: np.random.Generator, store: Store) -> ArgumentsT:
        """Return random arguments that fit the model."""
        raise NotImplementedError

    @property
    def is_async(self) -> bool:
        """Return whether `call` is an ``async def``."""
        return inspect.iscoroutinefunction(self.call)

    def run(self, raw: Mapping[str, Any], store: Store) -> ToolResult:
        """Check the arguments against the model, call the tool, and wait for its result.

        Raises:
            ToolError: If the arguments are invalid; the message contains the expected and the given
                arguments.
        """
        try:
            arguments = _validator(self.arguments)(dict(raw))
        except ValidationError as error:
            raise ToolError(complaint(self.name, self.arguments, error)) from None
        result = self.call(arguments, store)
        return result if isinstance(result, ToolResult) else background.run(result)


@cache
def _validator(arguments: type[ArgumentsT]) -> Callable[[Any], ArgumentsT]:
    """Return a function that creates an instance of a model from a dict.

    The function takes half the time of ``arguments(**raw)``, which calls `BaseModel.__init__`.
    """
    return TypeAdapter(arguments).validator.validate_python


def complaint(name: str, arguments: type[Arguments], error: ValidationError) -> str:
    """Return the error message of a call: the arguments that `name` takes, and the given ones."""
    expected = ", ".join(arguments.model_fields) or "no arguments"
    problems = "; ".join(
        f"{_location(problem['loc'])}: {problem['msg']} (got {shown(problem['input'])})"
        for problem in error.errors(include_url=False, include_context=False)[:4]
    )
    return f"{name} takes {expected}. {problems}."


def _location(steps: tuple[int | str, ...]) -> str:
    """Return the path to an argument; names that the policy invented are truncated."""
    path = ".".join(str(step)[: _SHOWN + 1] for step in steps[:8])
    if not path.isascii() or not path.isprintable() or len(path) > _SHOWN:
        return shown(path)
    return path or "arguments"


def _find(what: str, name: str, there: Mapping[str, StoredT]) -> StoredT:
    if name not in there:
        names = ", ".join(there) or f"no {what}"
        raise ToolError(f"There is no {what} called {shown(name)}. Available: {names}.")
    return there[name]


def shown(value: object) -> str:
    """Return a value for an error message: escaped to ASCII and truncated."""
    try:
        text = ascii(value)
    except Exception:  # noqa: BLE001 - a foreign __repr__, or an integer too long to print
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class ToolLifecycle:
    """Opens the tools before the first episode, and resets them for each episode.

    A simulator or a connection that a tool has opened remains open between episodes. A tool that
    raised `ServiceError` is closed after its episode and opened again for the next one.
    """

    def __init__(self) -> None:
        self._open: dict[str, Tool[Any]] = {}
        self._begun: list[Tool[Any]] = []
        self._failed: set[str] = set()

    def begin_episode(self, tools: Mapping[str, Tool[Any]], sample: Sample, store: Store) -> None:
        """Reset the tools for an episode, and open those that are not open.

        Args:
            tools: The tools of the episode, by name; a control may have removed some.
            sample: The sample.
            store: The texts and images of the episode.

        Raises:
            ServiceError: If a tool cannot be prepared.
        """
        for name, tool in tools.items():
            if name not in self._open:
                tool.open()
                self._open[name] = tool
            try:
                tool.reset(sample, store)
            except ServiceError:
                self.mark_failed(name)
                raise
            self._begun.append(tool)

    def mark_failed(self, name: str) -> None:
        """Record that this tool raised `ServiceError`; `close_failed` closes it."""
        self._failed.add(name)

    def end_episode(self) -> None:
        """End the episode of the tools that `begin_episode` has reset; they remain open."""
        while self._begun:
            self._begun.pop(0).end_episode()

    def close_failed(self) -> None:
        """Close the tools that have failed, so that the next episode opens them again."""
        failed, self._failed = self._failed, set()
        with suppress(ServiceError):  # closing a tool that has failed may also fail
            self._close(failed)

    def close(self) -> None:
        """Close all open tools."""
        self._close(self._open)

    def _close(self, names: Iterable[str]) -> None:
        """Close the open tools with these names, even if one of them raises."""
        with ExitStack() as stack:
            for name in sorted(names, reverse=True):
                if name in self._open:
                    stack.callback(self._open.pop(name).close)
