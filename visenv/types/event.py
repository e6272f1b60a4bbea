"""Events: what happened in an episode, as typed values.

A reward reads events and the sample, never text that a policy could write: text can look like
anything, a tool's success included, but only the environment writes events. A family adds its own
event types as NamedTuples or frozen dataclasses with a field ``turn``, and names them in
`visenv.registration.RECORD_TYPES` or in the entry-point group ``visenv.records``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeVar

from visenv.types.empty import EMPTY


class Event(Protocol):
    """Anything that has the number of its turn."""

    @property
    def turn(self) -> int:
        """Return the turn in which the event happened, from 0."""
        ...


EventT = TypeVar("EventT")


class TurnTaken(NamedTuple):
    """The policy took a turn; `text` is all of it, a prefill included."""

    turn: int
    text: str
    thought: str | None


class ToolCalled(NamedTuple):
    """The policy called a tool.

    Attributes:
        turn: The number of the turn, from 0.
        tool: The name that the policy gave, ``""`` if it gave none.
        arguments: The arguments that it passed, JSON-like, as parsed.
        ok: Whether the tool returned a result.
        reason: Why it did not, ``""`` if it did.
        outputs: Names under which the images of the result are stored.
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
    """A tool call of a turn was not carried out, because an earlier one stopped the turn."""

    turn: int
    tool: str
    arguments: Mapping[str, Any]
    reason: str


class Malformed(NamedTuple):
    """A turn could not be acted on: `code` for counting, `message` as the policy got it."""

    turn: int
    code: str
    message: str


class Answered(NamedTuple):
    """The policy gave its final answer."""

    turn: int
    answer: str


class Truncated(NamedTuple):
    """A limit ended the episode.

    `visenv.env.EpisodeLimits` names the limits of the environment; ``"wrapper"`` is a wrapper's.
    """

    turn: int
    reason: str


class Aborted(NamedTuple):
    """A service failed beyond its retries; the episode must not be used for training."""

    turn: int
    boundary: str
    reason: str


class Scored(NamedTuple):
    """A scorer (a judge, a teacher model, an encoder) gave a verdict.

    Attributes:
        turn: The turn after which it was asked for, from 0.
        term: The reward term that asked, or ``""``.
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
    """An event whose type is not known here: the package that defines it is not installed.

    Attributes:
        turn: The number of the turn, from 0.
        type: The name of the type.
        fields: Its fields, JSON-like.
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
    """The append-only list of an episode's events, with the questions that rewards ask."""

    __slots__ = ()

    def insert_all(self, index: int, events: Iterable[Event]) -> None:
        """Insert events before index `index`."""
        self[index:index] = events

    def truncate(self, length: int) -> None:
        """Drop the events from index `length` on."""
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
        """Return every tool call that was tried, in order."""
        return self.of_type(ToolCalled)

    @property
    def answer(self) -> str | None:
        """Return the final answer, or None if none was given."""
        for event in reversed(self):
            if type(event) is Answered:
                return event.answer
        return None
