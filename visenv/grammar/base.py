"""Defines how a turn's text becomes thought, calls and answer, and a result a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from visenv.types import Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool


class ToolCall(NamedTuple):
    """A tool call as written: a name and JSON-like arguments, neither checked yet."""

    name: str
    arguments: Mapping[str, Any]


class Problem(NamedTuple):
    """Explains why a turn, or a part of it, cannot be acted on.

    Attributes:
        code: Short and stable, for counting.
        message: What was expected and what was found, for the policy.
        in_call: Whether a tool call was attempted (it then counts as a failed one).
    """

    code: str
    message: str
    in_call: bool = False


class ParsedTurn(NamedTuple):
    """Holds what a turn says. With a problem, nothing of it is acted on."""

    thought: str | None = None
    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    problems: tuple[Problem, ...] = ()


class Grammar(Protocol):
    """Defines how turns and results are written. `parse` never raises or backtracks.

    Attributes:
        stop: Strings that end a turn, kept in its text.
        result_prefix: Stored images a tool returns are called ``f"{result_prefix}{k}"``.
    """

    stop: tuple[str, ...]
    result_prefix: str

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn; linear in its length."""
        ...

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn that `parse` reads back; problems are ignored."""
        ...

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return a tool's result as message parts; `names` are its images' names, in order."""
        ...

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return the message for a turn or a call that failed."""
        ...

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return how to write turns, with every tool described from its argument model."""
        ...

    def answer_regex(self, prefix: str) -> str:
        """Return a regular expression for the rest, after `prefix`, of a turn that must answer."""
        ...
