"""Finds plugins: environments, policies, algorithms and data sets of other installed packages.

A package names them as entry points in its ``pyproject.toml``::

    [project.entry-points."visenv.environments"]
    "mine/Cards-v0" = "visenv_cards:make"

Entry points are read when a name is not in the tables of `visenv.registration`, or when all names
are listed; `import visenv` does not read them. A plugin is imported only when it is loaded.
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
from visenv.garbage import heavy_imports

GROUPS = {
    "environment": "visenv.environments",
    "policy": "visenv.policies",
    "algorithm": "visenv.algorithms",
    "data set": "visenv.data",
    "wrapper": "visenv.wrappers",
    "record type": "visenv.records",
    "model family": "visenv.families",
}
"""The entry-point group of each kind of plugin."""

_SHOWN = 300


class Plugin(NamedTuple):
    """Represents a name that an installed package adds.

    Attributes:
        kind: A key of `GROUPS`.
        name: The name of the entry point.
        path: The object with this name, as ``"module:attribute"``.
        package: The name of the distribution in pip.
    """

    kind: str
    name: str
    path: str
    package: str

    @property
    def title(self) -> str:
        """Return the description of the plugin in error messages."""
        return f"The {self.kind} {self.name!r} of the package {self.package!r}"


@cache
def installed(kind: str) -> tuple[Plugin, ...]:
    """Return all plugins of a kind that installed packages add, sorted by name."""
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
        ConfigurationError: If two packages add the same name.
    """
    found = [each for each in installed(kind) if each.name == name]
    if len(found) > 1:
        raise ConfigurationError(_shared(found))
    return found[0] if found else None


def conflicts(kind: str, table: Mapping[str, object]) -> Iterator[str]:
    """Yield an error message for each name that two packages add, or that visenv itself uses.

    Args:
        kind: A key of `GROUPS`.
        table: The names of visenv's own objects, with the object of each as ``"module:attribute"``.
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
    """Return the object at ``"module:attribute"``.

    Args:
        path: The module and the attribute.
        title: The description of the object at the start of an error message.

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
    """Import a module of other authors, which may raise any exception.

    Args:
        module: The name of the module.
        title: The description of the module at the start of an error message.

    Raises:
        ConfigurationError: If the module cannot be imported.
    """
    try:
        with heavy_imports():
            return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{title} cannot be imported: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """Return an error of other authors' code in one line: its type, its text, and its location."""
    text = " ".join(str(error).split())
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and Path(frame.filename).parent.name != "importlib"
    ]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if shown else ''}{shown}{where}"
