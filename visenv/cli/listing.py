"""Implements `visenv list`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import gymnasium as gym

from visenv.errors import ConfigurationError
from visenv.plugins import GROUPS, SECTIONS, broken_manifests, conflicts, installed
from visenv.registration import ENVIRONMENTS, TABLES

_TITLES = {
    "policy": "policies",
    "algorithm": "algorithms",
    "data set": "data",
    "suite": "suites",
}


@dataclass(frozen=True)
class ListCommand:
    """List the environments, policies, algorithms, data sets and suites.

    Names that an installed package adds are listed with the name of the package. Their objects are
    not imported.
    """

    def run(self) -> None:
        """Print the names.

        Raises:
            ConfigurationError: If packages add names that are already in use, or a manifest cannot
                be read; all usable names are printed first.
        """
        rows = {name: entry.summary for name, entry in ENVIRONMENTS.items()}
        rows |= _added("environment")
        width = max(map(len, rows))
        print("environments")
        for name, summary in rows.items():
            print(f"  {name:{width}}  {summary}")
        for kind, title in _TITLES.items():
            added = [f"{name} ({package})" for name, package in _added(kind).items()]
            print(f"{title}\n  {', '.join([*TABLES[kind], *added])}")
        kinds = dict.fromkeys([*GROUPS, *SECTIONS])
        problems = [text for kind in kinds for text in conflicts(kind, _taken(kind))]
        problems += broken_manifests()
        if problems:
            raise ConfigurationError(" ".join(problems))


def _taken(kind: str) -> Mapping[str, object]:
    """Return the names of a kind that no package can add, with their objects."""
    if kind == "environment":  # Gymnasium's environments too
        return {name: spec.entry_point for name, spec in gym.registry.items()}
    return TABLES[kind]


def _added(kind: str) -> dict[str, str]:
    """Return the names that packages add, with the names of the packages."""
    names: dict[str, str] = {}
    taken = _taken(kind)
    for plugin in installed(kind):
        if taken.get(plugin.name, plugin.path) == plugin.path:
            package = f"package {plugin.package}"
            others = names.get(plugin.name)
            names[plugin.name] = f"{others} and {package}" if others else package
    return names
