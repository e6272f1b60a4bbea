"""`visenv list`."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.errors import ConfigurationError
from visenv.plugins import GROUPS, conflicts, installed
from visenv.registration import ENVIRONMENTS, RECORD_TYPES, TABLES

_TITLES = {"policy": "policies", "algorithm": "algorithms", "data set": "data"}


@dataclass(frozen=True)
class List:
    """List the environments, policies, algorithms and data sets.

    What an installed package adds is listed with the name of the package, and is not imported.
    """

    def run(self) -> None:
        """Print them.

        Raises:
            ConfigurationError: If packages add names that are taken; what can be used is printed
                before.
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
        tables = {**TABLES, "record type": RECORD_TYPES}
        problems = [each for kind in GROUPS for each in conflicts(kind, tables[kind])]
        if problems:
            raise ConfigurationError(" ".join(problems))


def _added(kind: str) -> dict[str, str]:
    """Return the names that packages add, with the packages."""
    names: dict[str, str] = {}
    for plugin in installed(kind):
        if plugin.name not in TABLES[kind]:
            others = names.get(plugin.name)
            package = f"package {plugin.package}"
            names[plugin.name] = f"{others} and {package}" if others else package
    return names
