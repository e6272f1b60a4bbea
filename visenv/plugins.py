"""Finds plugins: the manifests and single objects of other installed packages.

A package names its manifest (`visenv.family`), or single objects, as entry points in its
``pyproject.toml``::

    [project.entry-points."visenv.manifests"]
    cards = "visenv_cards:FAMILY"

    [project.entry-points."visenv.policies"]
    card-counter = "visenv_cards.policy:CardCounter"

Entry points are read when a name is not in the tables of `visenv.registration`, or when all names
are listed; `import visenv` does not read them. Manifests are imported when entry points are read, a
plugin only when it is loaded.
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
from visenv.family import Family
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

MANIFESTS = "visenv.manifests"
"""The entry-point group of manifests."""

SECTIONS = {
    "environment": "environments",
    "data set": "data",
    "record type": "records",
    "curation step": "curation",
    "suite": "suites",
    "recipe": "recipes",
    "scorer": "scorers",
    "baseline prompts": "baselines",
    "simulator": "simulators",
    "wrapper": "wrappers",
}
"""The section of a manifest of each kind of plugin."""

_SHOWN = 300


class Plugin(NamedTuple):
    """Represents a name that an installed package adds.

    Attributes:
        kind: A key of `GROUPS` or `SECTIONS`.
        name: The name of the entry point, or the name in the manifest.
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
    found = set()
    if kind in GROUPS:
        found = {Plugin(kind, *entry) for entry in _entry_points(GROUPS[kind])}
    if kind in SECTIONS:
        for package, family in _manifests():
            if isinstance(family, Family):
                names = family.names(SECTIONS[kind])
                found |= {Plugin(kind, name, path, package) for name, path in names.items()}
    return tuple(sorted(found))


def broken_manifests() -> list[str]:
    """Return an error message for each installed manifest that cannot be read."""
    return [str(error) for _, error in _manifests() if isinstance(error, ConfigurationError)]


@cache
def _manifests() -> tuple[tuple[str, Family | ConfigurationError], ...]:
    """Return the packages that have a manifest, each with the manifest or with its problem."""
    found: list[tuple[str, Family | ConfigurationError]] = []
    for _, path, package in _entry_points(MANIFESTS):
        title = f"The manifest {path!r} of the package {package!r}"
        try:
            found.append((package, read_manifest(path, title)))
        except ConfigurationError as error:
            found.append((package, error))
    return tuple(found)


def _entry_points(group: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, object and package of each entry point of a group."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=group):
        yield entry.name, entry.value, entry.dist.name if entry.dist else "(unknown)"


def read_manifest(path: str, title: str) -> Family:
    """Return the manifest at ``"module:attribute"``.

    Raises:
        ConfigurationError: If it cannot be imported, or is not a `Family`.
    """
    family = import_attribute(path, title)
    if not isinstance(family, Family):
        raise ConfigurationError(f"{title} must be a visenv.family.Family, got {family!r:.80}.")
    return family


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
        kind: A key of `GROUPS` or `SECTIONS`.
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
