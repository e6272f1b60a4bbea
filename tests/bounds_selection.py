"""Selects the tests of `make bounds`, as a plugin of pytest.

The environment variable ``VISENV_EXTRAS`` names the tested extras. Without one, all tests run that
need no component or only installed packages. With extras, only those tests run that also need a
package of one of these extras. Tests of programs such as a browser or a simulator are left out.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import pytest

from tests.bounds import requirements

_ALIASES: Final = {"opencv": "opencv-python-headless"}
_LIBRARIES: Final = frozenset({"osmesa"})
"""Components that are no Python packages, but belong to an extra."""


def is_installed(component: str) -> bool:
    """Return whether a component is an installed package of this interpreter."""
    if component in _LIBRARIES:
        return True
    try:
        version(_ALIASES.get(component, component))
    except PackageNotFoundError:
        return False
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that do not belong to the installed extras."""
    extras = os.environ.get("VISENV_EXTRAS", "")
    own = {name for extra in filter(None, extras.split(",")) for name in requirements(extra)}
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        needed = {
            str(name).replace("_", "-")
            for mark in item.iter_markers("component")
            for name in mark.args
        }
        fits = all(map(is_installed, needed)) and (not extras or bool(needed & own))
        (chosen if fits else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen
