"""Finds the preset of a procedural world by name, and changes some of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from visenv.errors import ConfigurationError, UnknownNameError

PresetT = TypeVar("PresetT")


def changed_preset(
    presets: Mapping[str, PresetT], name: str, changes: Mapping[str, Any], what: str, field: str
) -> PresetT:
    """Return a preset with some of its fields changed.

    Args:
        presets: The presets by name, instances of one dataclass.
        name: The name of the preset.
        changes: New values of its fields; a list is converted to a tuple, as recipes have no
            tuples.
        what: The name of a preset in errors, for example ``"preset of scenes"``.
        field: The name of a field in errors.

    Raises:
        UnknownNameError: If there is no such preset or field; the message suggests the nearest
            name.
        ConfigurationError: If the type of a value differs from the type of its field.
    """
    if name not in presets:
        raise UnknownNameError(what, str(name), presets)
    preset: Any = presets[name]
    types = get_type_hints(type(preset))
    values: dict[str, Any] = {}
    for change, value in changes.items():
        if change not in types:
            raise UnknownNameError(field, change, types)
        try:
            values[change] = TypeAdapter(types[change]).validate_python(value)
        except ValidationError as error:
            said = error.errors()[0]["msg"]
            raise ConfigurationError(f"The {field} {change}: {said}, got {value!r}.") from error
    made: PresetT = replace(preset, **values)
    return made
