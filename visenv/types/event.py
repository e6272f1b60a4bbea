"""What happened in an episode, as typed values: the only thing a reward reads beside the Sample.

Text that a policy writes can look like anything, a tool's success included. Events are written by
the environment alone, so a reward that reads them cannot be fooled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class TurnTaken(NamedTuple):
    """The policy took a turn; `text` is all of it, a pre-filled prefix included."""

    turn: int
    text: str
    thought: str | None


class ToolCalled(NamedTuple):
    """The policy tried to use a tool.

    Attributes:
        turn: Turn number from 0.
        tool: The name it gave, ``""`` when it gave none.
        arguments: What it passed, JSON-like, as parsed.
        ok: Whether the tool returned a result.
        reason: Why not, ``""`` when it did.
        outputs: Names under which the results are stored.
        detail: Facts the tool adds, JSON-like (for a zoom, the box it cut).
    """

    turn: int
    tool: str
    arguments: Mapping[str, Any]
    ok: bool
    reason: str = ""
    outputs: tuple[str, ...] = ()
    detail: Mapping[str, Any] = {}


class Malformed(NamedTuple):
    """A turn could not be acted on: `code` for counting, `message` as the policy was told."""

    turn: int
    code: str
    message: str


class Answered(NamedTuple):
    """The policy gave its final answer."""

    turn: int
    answer: str


class Truncated(NamedTuple):
    """A limit ended the episode: ``"turns"``, ``"invalid actions"``, ``"length"``."""

    turn: int
    reason: str


class Aborted(NamedTuple):
    """A service failed beyond its retries; the episode must not be learnt from."""

    turn: int
    boundary: str
    reason: str


Event = TurnTaken | ToolCalled | Malformed | Answered | Truncated | Aborted

EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (TurnTaken, ToolCalled, Malformed, Answered, Truncated, Aborted)
}


def event_to_json(event: Event) -> dict[str, Any]:
    """The event as a JSON object with its class name under ``"event"``."""
    return {"event": type(event).__name__, **event._asdict()}


def event_from_json(record: Mapping[str, Any]) -> Event:
    """The inverse of `event_to_json`."""
    fields = {key: value for key, value in record.items() if key != "event"}
    if "outputs" in fields:
        fields["outputs"] = tuple(fields["outputs"])
    return EVENT_TYPES[record["event"]](**fields)


class Log(Sequence[Event]):
    """The append-only list of an episode's events, with the questions rewards ask of it."""

    __slots__ = ("_events",)

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._events = list(events)

    def extend(self, events: Iterable[Event]) -> None:
        """Add the events of one step."""
        self._events.extend(events)

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: Any) -> Any:
        return self._events[index]

    @property
    def turns(self) -> list[TurnTaken]:
        """The policy's turns, in order."""
        return [event for event in self._events if type(event) is TurnTaken]

    @property
    def tool_calls(self) -> list[ToolCalled]:
        """Every attempt to use a tool, in order."""
        return [event for event in self._events if type(event) is ToolCalled]

    @property
    def answer(self) -> str | None:
        """The final answer, or None when none was given."""
        for event in reversed(self._events):
            if type(event) is Answered:
                return event.answer
        return None
