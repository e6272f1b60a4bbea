"""Checks the named presets of an environment and the options that change them.

A family defines its presets as a mapping of names to instances of one frozen dataclass. The
function that makes an environment takes the name, and any field of that dataclass as a keyword
argument::

    preset = choose_preset("visenv/ArmDoc-v0", make_doc, PRESETS, "train", {"turns": 6})
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from visenv.errors import ConfigurationError, UnknownNameError

PresetT = TypeVar("PresetT")
_ENV_OPTIONS: Sequence[str] = ("render_mode", "on_abort")


def choose_preset(
    env_id: str,
    maker: Callable[..., Any],
    presets: Mapping[str, PresetT],
    name: str,
    changes: Mapping[str, object],
) -> PresetT:
    """Return a preset with some of its fields changed.

    The type of a field determines its valid values: one of the values of a `typing.Literal`, a
    whole number of at least 1 for ``int``, a string for ``str``, and None if the type allows it.

    Args:
        env_id: The id of the environment, for error messages.
        maker: The function that makes the environment; error messages list its arguments.
        presets: The presets by name, instances of one dataclass.
        name: The name of the preset.
        changes: The new values of fields of the preset, by name.

    Raises:
        UnknownNameError: If there is no such preset, option or choice; suggests the nearest.
        ConfigurationError: If a value is invalid for its field.
    """
    check_choice("preset", name, presets)
    preset: Any = presets[name]
    types = get_type_hints(type(preset))
    for option, value in changes.items():
        if option not in types:
            raise UnknownNameError(
                f"option of {env_id}", option, [*dict.fromkeys([*options_of(maker), *types])]
            )
        _check(option, value, types[option])
    chosen: PresetT = replace(preset, **changes)
    return chosen


def options_of(maker: Callable[..., Any]) -> list[str]:
    """Return the names of a maker's arguments, including those of ``**settings: Unpack[...]``."""
    names: list[str] = []
    hints = get_type_hints(maker)
    for name, parameter in inspect.signature(maker).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            names.append(name)
            continue
        for shared in get_args(hints[name]):  # Unpack[Settings]
            names += get_type_hints(shared)
    return names


def pop_env_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Remove from the settings the arguments that every `VisEnv` takes, and return them."""
    return {name: settings.pop(name) for name in _ENV_OPTIONS if name in settings}


def check_choice(option: str, value: object, choices: Iterable[str]) -> None:
    """Check that the value of an option is one of its choices.

    Raises:
        UnknownNameError: If it is not; suggests the nearest choice.
    """
    known = list(choices)
    if value not in known:
        raise UnknownNameError(option, str(value), known)


def check_count(option: str, value: object, least: int = 1) -> None:
    """Check that the value of an option is a whole number of at least `least`.

    Raises:
        ConfigurationError: If the value is not such a number.
    """
    if type(value) is not int or value < least:
        raise ConfigurationError(
            f"{option} must be a whole number of at least {least}, got {value!r}."
        )


def _check(option: str, value: object, annotation: Any) -> None:
    """Check the value of a field against the field's type."""
    choices = get_args(annotation)
    if get_origin(annotation) is Literal:
        check_choice(option, value, choices)
    elif value is None and NoneType in choices:
        return
    elif annotation is bool:
        if not isinstance(value, bool):
            raise ConfigurationError(f"{option} must be True or False, got {value!r}.")
    elif int in (annotation, *choices):
        check_count(option, value)
    elif not isinstance(value, str):
        raise ConfigurationError(f"{option} must be a string, got {value!r}.")


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
