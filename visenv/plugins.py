"""Plugins: environments, policies, algorithms and data sets of other installed packages.

A package names them as entry points in its ``pyproject.toml``::

    [project.entry-points."visenv.environments"]
    "mine/Cards-v0" = "visenv_cards:make"

Entry points are read when a name is not in the tables of `visenv.registration`, or when all names
are listed; `import visenv` does not read them. Nothing is imported until it is loaded.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from visenv.errors import ConfigurationError

GROUPS = {
    "environment": "visenv.environments",
    "policy": "visenv.policies",
    "algorithm": "visenv.algorithms",
    "data set": "visenv.data",
    "record type": "visenv.records",
}
"""The entry-point group of each kind that a package can add."""

_SHOWN = 300


class Plugin(NamedTuple):
    """A name that an installed package adds.

    Attributes:
        kind: A key of `GROUPS`.
        name: The name of the entry point.
        path: What it stands for, as ``"module:attribute"``.
        package: The distribution, as pip knows it.
    """

    kind: str
    name: str
    path: str
    package: str

    @property
    def title(self) -> str:
        """Return what an error calls the plugin."""
        return f"The {self.kind} {self.name!r} of the package {self.package!r}"


@cache
def installed(kind: str) -> tuple[Plugin, ...]:
    """Return everything of a kind that installed packages add, by name."""
    from importlib.metadata import entry_points

    if kind not in GROUPS:
        return ()
    found = entry_points(group=GROUPS[kind])
    return tuple(
        sorted(
            Plugin(kind, each.name, each.value, each.dist.name if each.dist else "(unknown)")
            for each in found
        )
    )


def find(kind: str, name: str) -> Plugin | None:
    """Return the plugin of that name, or None.

    Raises:
        ConfigurationError: If two packages add the name.
    """
    found = [each for each in installed(kind) if each.name == name]
    if len(found) > 1:
        raise ConfigurationError(_shared(found))
    return found[0] if found else None


def conflicts(kind: str, table: Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence for each name that is added twice, or that is in visenv's own table.

    Args:
        kind: A key of `GROUPS`.
        table: What the names that are taken stand for, as ``"module:attribute"``.
    """
    for name in dict.fromkeys(each.name for each in installed(kind)):
        found = [each for each in installed(kind) if each.name == name]
        if len(found) > 1:
            yield _shared(found)
        elif table.get(name, found[0].path) != found[0].path:
            yield (
                f"{found[0].title} has a name that is registered already, and is not used; the "
                "package must choose another name."
            )


def _shared(found: list[Plugin]) -> str:
    kind, name, *_ = found[0]
    packages = " and ".join(repr(each.package) for each in found)
    return f"The {kind} {name!r} is added by the packages {packages}; uninstall all but one."


def import_attribute(path: str, title: str) -> Any:
    """Return what ``"module:attribute"`` names.

    Args:
        path: The module and the attribute.
        title: What an error calls it, at the beginning of a sentence.

    Raises:
        ConfigurationError: If the module cannot be imported or has no such attribute.
    """
    module, _, attribute = path.partition(":")
    if not attribute.isidentifier():
        raise ConfigurationError(f"{title} must be given as module:attribute, got {path!r}.")
    imported = import_module(module, title)
    try:
        return getattr(imported, attribute)
    except AttributeError as error:
        raise ConfigurationError(
            f"{title} cannot be loaded: there is no {attribute!r} in the module {module!r}."
        ) from error


def import_module(module: str, title: str) -> ModuleType:
    """Import a module of foreign code, which may raise anything.

    Args:
        module: The name of the module.
        title: What an error calls it, at the beginning of a sentence.

    Raises:
        ConfigurationError: If the module cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{title} cannot be imported: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """Return an error of foreign code in one line: its type, its text, and where it was raised."""
    text = " ".join(str(error).split())
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and Path(frame.filename).parent.name != "importlib"
    ]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if shown else ''}{shown}{where}"
