"""Converts events and ground truths to JSON: typed values with their registered names.

A family lists its event types and ground-truth types in its manifest (`visenv.family`); another
package may also list its types in the entry-point group ``visenv.records``. If the package that
defines a type is missing, a saved value is read as `UnknownEvent` or `UnknownRecord`, which is
written unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from visenv.errors import ConfigurationError, EpisodeError
from visenv.plugins import GROUPS, find, import_attribute, installed
from visenv.registration import RECORD_TYPES
from visenv.types import UnknownEvent
from visenv.types.event import CORE_EVENTS

_KIND = "record type"
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class UnknownRecord(NamedTuple):
    """Represents a ground truth whose type is not installed.

    Attributes:
        type: The name of the type.
        fields: The fields of the ground truth, JSON-like.
    """

    type: str
    fields: Mapping[str, Any]


def event_to_json(event: Any) -> dict[str, Any]:
    """Return the event as a JSON object, with the name of its type under ``"event"``.

    Raises:
        EpisodeError: If the type has no registered name.
    """
    if isinstance(event, UnknownEvent):
        return {"event": event.type, "turn": event.turn, **event.fields}
    name = type(event).__name__
    if CORE_EVENTS.get(name) is not type(event):
        name = _name_of(_path_of(event))
    return {"event": name, **fields_of(event)}


def event_from_json(record: Mapping[str, Any]) -> Any:
    """Return the event that `event_to_json` wrote.

    Raises:
        ValueError: If a field has another type; pydantic's `ValidationError` is one.
        TypeError: If the fields have another form.
        LookupError: If a field is missing.
    """
    fields = {key: value for key, value in record.items() if key != "event"}
    name = record["event"]
    if name in CORE_EVENTS:
        if "outputs" in fields:
            fields["outputs"] = tuple(fields["outputs"])
        return _core_adapter(name).validate_python(fields, strict=True)
    adapter = _adapter_of(name)
    if adapter is None:
        turn = fields.pop("turn")
        if type(turn) is not int:
            raise TypeError(f"the turn of the event {name!r:.80} is {type(turn).__name__}")
        return UnknownEvent(turn, name, fields)
    return adapter.validate_python(fields)


def truth_to_json(truth: Any) -> Any:
    """Return a ground truth as JSON: its fields and the name of its type.

    Raises:
        EpisodeError: If the type has no registered name.
    """
    if truth is None:
        return None
    if isinstance(truth, UnknownRecord):
        return {"type": truth.type, "fields": dict(truth.fields)}
    return {"type": _name_of(_path_of(truth)), "fields": fields_of(truth)}


def truth_from_json(record: Any) -> Any:
    """Return the ground truth that `truth_to_json` wrote."""
    if record is None:
        return None
    adapter = _adapter_of(record["type"])
    if adapter is None:
        return UnknownRecord(record["type"], dict(record["fields"]))
    return adapter.validate_python(record["fields"], strict=False)


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of an event or a ground truth, JSON-like, by name; empty for None."""
    if value is None:
        return {}
    if isinstance(value, UnknownRecord):
        return dict(value.fields)
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    fields: dict[str, Any] = value._asdict()
    return {name: _plain(field) for name, field in fields.items()}


def known_fields(truth: Any) -> dict[str, Any]:
    """Return the fields of a ground truth that are not empty, JSON-like, by name."""
    return {name: value for name, value in fields_of(truth).items() if value not in _EMPTY}


def _plain(value: Any) -> Any:
    """Convert nested dataclasses and named tuples to JSON-like values."""
    if dataclasses.is_dataclass(value) or hasattr(value, "_asdict"):
        return fields_of(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


@cache
def _core_adapter(name: str) -> TypeAdapter[Any]:
    """Return the validator of an event of the core."""
    return TypeAdapter(CORE_EVENTS[name])


@cache
def _adapter(path: str) -> TypeAdapter[Any] | None:
    """Return the validator of a type's fields, or None if its package is not installed."""
    try:
        return TypeAdapter(import_attribute(path, f"The record type {path!r}"))
    except ConfigurationError as error:
        if isinstance(error.__cause__, ImportError):
            return None
        raise


def _path_of(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


@cache
def _name_of(path: str) -> str:
    added = [(plugin.name, plugin.path) for plugin in installed(_KIND)]
    for name, known in [*RECORD_TYPES.items(), *added]:
        if known == path:
            return name
    raise EpisodeError(
        f"{path} is not a registered type of events or ground truths: name it in the entry-point "
        f"group {GROUPS[_KIND]!r} of your package, for example MyEvent = {path!r}."
    )


def _adapter_of(name: str) -> TypeAdapter[Any] | None:
    if name in RECORD_TYPES:
        return _adapter(RECORD_TYPES[name])
    plugin = find(_KIND, name)
    return None if plugin is None else _adapter(plugin.path)
