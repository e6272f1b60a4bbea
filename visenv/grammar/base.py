"""Defines how text becomes thought, calls and answer, and how a result becomes a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from visenv.types import Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool

_FENCE = "```"


class ToolCall(NamedTuple):
    """Represents a tool call as written: a name and JSON-like arguments, not yet validated."""

    name: str
    arguments: Mapping[str, Any]


class Problem(NamedTuple):
    """Explains why a turn, or a part of it, cannot be acted on.

    Attributes:
        code: A short code that does not change between versions, for statistics.
        message: The expected and the found text, for the policy.
        in_call: Whether a tool call was attempted, which then counts as a failed call.
    """

    code: str
    message: str
    in_call: bool = False


class ParsedTurn(NamedTuple):
    """Holds the parts of a turn. If there is a problem, neither calls nor answer are executed."""

    thought: str | None = None
    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    problems: tuple[Problem, ...] = ()


class Grammar(Protocol):
    """Defines the format of turns and results. `parse` never raises or backtracks.

    Attributes:
        stop: Strings that end a turn, kept in its text.
        result_prefix: Names of the images that a tool returns are ``f"{result_prefix}{k}"``.
    """

    stop: tuple[str, ...]
    result_prefix: str

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn, in time linear in its length."""
        ...

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn such that `parse` reads it back; problems are ignored."""
        ...

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return a tool's result as message parts.

        `names` are the names of its images, in order.
        """
        ...

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return the message for a turn or a call that failed."""
        ...

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return instructions for writing turns; every tool is described by its argument model."""
        ...

    def answer_regex(self, prefix: str) -> str:
        """Return a regular expression of the text after `prefix` in a turn that must answer."""
        ...


def without_fence(text: str) -> str:
    """Return the text inside one Markdown fence that encloses the whole text, if there is one."""
    if not text.startswith(_FENCE) or not text.endswith(_FENCE) or "\n" not in text:
        return text
    return text[text.index("\n") : -len(_FENCE)]
