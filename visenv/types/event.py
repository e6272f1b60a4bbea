"""Defines events: typed values that record what happened in an episode.

A reward reads events and the sample, and never text that a policy could write. A policy can imitate
any text, including a tool's success, but only the environment creates events. A family adds its own
event types as NamedTuples or frozen dataclasses with a field ``turn``, and lists them in
a manifest (`visenv.family`) or in the entry-point group ``visenv.records``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeVar

from visenv.types.empty import EMPTY


class Event(Protocol):
    """Describes any object that has the number of its turn."""

    @property
    def turn(self) -> int:
        """Return the turn in which the event happened, from 0."""
        ...


EventT = TypeVar("EventT")


class TurnTaken(NamedTuple):
    """Records a turn of the policy; `text` is the whole turn, including a prefill."""

    turn: int
    text: str
    thought: str | None


class ToolCalled(NamedTuple):
    """Records that the policy called a tool.

    Attributes:
        turn: The number of the turn, from 0.
        tool: The name of the tool in the call, ``""`` if the call has no name.
        arguments: The parsed arguments, JSON-like.
        ok: Whether the tool returned a result.
        reason: The reason why it did not, otherwise ``""``.
        outputs: The names of the stored images of the result.
        detail: Facts that the tool adds, JSON-like (for a zoom, the box that it cut).
        env_steps: Steps of the environment that the call used (simulators; otherwise 0).
    """

    turn: int
    tool: str
    arguments: Mapping[str, Any]
    ok: bool
    reason: str = ""
    outputs: tuple[str, ...] = ()
    detail: Mapping[str, Any] = EMPTY
    env_steps: int = 0


class CallSkipped(NamedTuple):
    """Records that a tool call was not executed, because an earlier call stopped the turn."""

    turn: int
    tool: str
    arguments: Mapping[str, Any]
    reason: str


class Malformed(NamedTuple):
    """Records a malformed turn: `code` is for statistics, and the policy sees `message`."""

    turn: int
    code: str
    message: str


class Answered(NamedTuple):
    """Records the final answer of the policy."""

    turn: int
    answer: str


class Truncated(NamedTuple):
    """Records that a limit ended the episode.

    `visenv.env.EpisodeLimits` defines the limits of the environment; ``"wrapper"`` is the limit of
    a wrapper.
    """

    turn: int
    reason: str


class Aborted(NamedTuple):
    """Records that a service failed after all retries; the episode is not used for training."""

    turn: int
    boundary: str
    reason: str


class Scored(NamedTuple):
    """Records the verdict of a scorer (a judge, a teacher model, an encoder).

    Attributes:
        turn: The turn after which the verdict was requested, from 0.
        term: The reward term that requested the verdict, or ``""``.
        scorer: The name of the scorer.
        model: The model that gave the verdict.
        digest: The digest of the request (`visenv.scorers`).
        value: The verdict, JSON-like.
    """

    turn: int
    term: str
    scorer: str
    model: str
    digest: str
    value: Any


class UnknownEvent(NamedTuple):
    """Represents an event of a type whose package is not installed.

    Attributes:
        turn: The number of the turn, from 0.
        type: The name of the type.
        fields: The fields of the event, JSON-like.
    """

    turn: int
    type: str
    fields: Mapping[str, Any]


CORE_EVENTS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        TurnTaken,
        ToolCalled,
        CallSkipped,
        Malformed,
        Answered,
        Truncated,
        Aborted,
        Scored,
    )
}


class EventLog(list[Any]):
    """Holds the events of an episode, in order, with the queries that rewards need."""

    __slots__ = ()

    def insert_all(self, index: int, events: Iterable[Event]) -> None:
        """Insert events before index `index`."""
        self[index:index] = events

    def truncate(self, length: int) -> None:
        """Remove the events from index `length` on."""
        del self[length:]

    def by_turn(self) -> dict[int, tuple[Any, ...]]:
        """Return the events of each turn, in order, by the number of the turn."""
        turns: dict[int, tuple[Any, ...]] = {}
        for turn, events in groupby(self, key=lambda event: event.turn):
            turns[turn] = (*turns.get(turn, ()), *events)
        return turns

    def since(self, start: int) -> tuple[Any, ...]:
        """Return the events from index `start` on."""
        return tuple(self[start:])

    def of_type(self, kind: type[EventT]) -> list[EventT]:
        """Return the events of exactly this type, in order."""
        return [event for event in self if type(event) is kind]

    @property
    def turns(self) -> list[TurnTaken]:
        """Return the policy's turns, in order."""
        return self.of_type(TurnTaken)

    @property
    def tool_calls(self) -> list[ToolCalled]:
        """Return all tool calls that were tried, in order."""
        return self.of_type(ToolCalled)

    @property
    def answer(self) -> str | None:
        """Return the final answer, or None if none was given."""
        for event in reversed(self):
            if type(event) is Answered:
                return event.answer
        return None
