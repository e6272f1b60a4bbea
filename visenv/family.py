"""Defines the manifest of a family: the names that it adds to visenv, and where each object is.

A family is a package of environments with everything that belongs to them. Its ``__init__.py``
contains the manifest and imports nothing else, so that visenv can list the names of all families
without loading any of them::

    FAMILY = Family(
        environments={"mine/Cards-v0": EnvEntry("cards.env:make", "turn over cards")},
        data={"decks": "cards.data:Decks"},
    )

`visenv.registration` reads the manifests of visenv, and those that other packages name in the
entry-point group ``visenv.manifests``. `export_make` lets the package of a family export the names
of its module `make`, which is imported when one of them is needed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

from typing_extensions import override

from visenv.errors import ConfigurationError

Names = Mapping[str, str]


class EnvEntry(NamedTuple):
    """Describes one environment: the function that makes it, and a description of one line."""

    entry_point: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Family:
    """Lists names, each with its object as ``"module:attribute"``; nothing is imported.

    Attributes:
        environments: Ids of Gymnasium, each with the function that makes the environment with its
            reward.
        data: Data sets: classes whose first argument is the folder.
        records: Types of events and ground truths, by the names under which they are saved.
        curation: Steps of `visenv data`: subclasses of `CurationStep` that are dataclasses.
        suites: Tables of papers that `visenv suite` plays: objects of the class `Suite`.
        recipes: Recipes of `visenv train`, each as ``"package:file.toml"``.
        scorers: Backends of judges and other models: subclasses of `ScorerBackend`.
        baselines: Texts of the baseline policies.
        simulators: Parts of simulators that `visenv doctor` looks for: objects of the class
            `SimulatorParts`.
        wrappers: Wrappers that the spec of a saved episode may contain, by their class names.
    """

    environments: Mapping[str, EnvEntry] = field(default_factory=dict)
    data: Names = field(default_factory=dict)
    records: Names = field(default_factory=dict)
    curation: Names = field(default_factory=dict)
    suites: Names = field(default_factory=dict)
    recipes: Names = field(default_factory=dict)
    scorers: Names = field(default_factory=dict)
    baselines: Names = field(default_factory=dict)
    simulators: Names = field(default_factory=dict)
    wrappers: Names = field(default_factory=dict)

    def __post_init__(self) -> None:
        for section in fields(self):
            listed = getattr(self, section.name)
            kind = EnvEntry if section.name == "environments" else str
            if not isinstance(listed, Mapping) or not all(
                isinstance(name, str) and isinstance(value, kind) for name, value in listed.items()
            ):
                raise ConfigurationError(
                    f"{section.name} of a Family must map names to objects of the class "
                    f"{kind.__name__}, got {listed!r:.80}."
                )

    def names(self, section: str) -> Names:
        """Return the names of one section with their objects.

        Args:
            section: The name of a field, for example ``"environments"``.
        """
        listed: Mapping[str, str | EnvEntry] = getattr(self, section)
        return {
            name: value.entry_point if isinstance(value, EnvEntry) else value
            for name, value in listed.items()
        }


class _Package(ModuleType):
    """Exports the public names of the module `make` of a package, which is loaded when needed."""

    @override
    def __getattr__(self, name: str) -> Any:
        # Python asks for the name of a module before it imports it, as for `from . import prompts`.
        if not name.startswith("__") and (
            name == "make" or find_spec(f"{self.__name__}.{name}") is None
        ):
            module = importlib.import_module(f"{self.__name__}.make")
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        # Python sets each imported module as an attribute of its package. The function `make` of
        # the module `make` must not be hidden by its module.
        if isinstance(value, ModuleType) and name in getattr(value, "__all__", ()):
            value = getattr(value, name)
        super().__setattr__(name, value)


def export_make(package: str) -> None:
    """Let a package export the public names of its module `make`, without importing it yet.

    Args:
        package: The ``__name__`` of the package.
    """
    sys.modules[package].__class__ = _Package
