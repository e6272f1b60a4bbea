"""Defines arguments that several commands share, with the names in their help."""

from __future__ import annotations

from typing import Annotated

from tyro.conf import Positional, arg

from visenv.errors import ConfigurationError

EnvName = Annotated[str, Positional, arg(metavar="ENV")]
DataName = Annotated[str | None, arg(metavar="NAME:FOLDER")]
PolicyName = Annotated[str, arg(metavar="NAME")]
Settings = Annotated[list[str], arg(metavar="KEY=VALUE")]

ControlName = Annotated[str, arg(metavar="CONTROL")]


def check_at_least(lowest: float, **given: float | None) -> None:
    """Raise a `ConfigurationError` that names an option whose value is too low or NaN."""
    for name, value in given.items():
        if value is not None and not value >= lowest:
            option = "--" + name.replace("_", "-")
            raise ConfigurationError(f"{option} must be at least {lowest}, got {value}.")
