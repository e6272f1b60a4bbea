"""Creates placeholders for modules that habitat-lab imports but that are not installed.

habitat-lab imports ``magnum`` (with its part ``corrade``) and ``habitat_sim``, which are not on
PyPI, at the top of modules whose tasks, measures and PDDL code need neither. Inside `importing`
these imports succeed. Every attribute of a placeholder is a class. habitat-lab calls some of them
when it is imported (default values such as ``mn.Vector3.zero_init()``); later calls raise
`PlaceholderError`.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from typing_extensions import override

NAMES = ("magnum", "corrade", "habitat_sim")
"""The modules that may be replaced; corrade is a part of magnum's Python bindings."""


class PlaceholderError(RuntimeError):
    """Raised when an attribute of a missing module is used."""


class _PlaceholderType(type):
    """Defines the type of placeholder classes, which can be subclassed and used in annotations."""

    _are_closed = False

    @override
    def __call__(cls, *_args: Any, **_kwargs: Any) -> Any:
        if cls._are_closed:
            raise PlaceholderError(f"{cls.__module__}.{cls.__name__} is a placeholder: {_REASON}")
        return cls

    def __getattr__(cls, name: str) -> Any:
        return _make(f"{cls.__module__}.{cls.__name__}", name)

    @override
    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


_REASON = "this interpreter has no habitat-sim. Install it from its conda channel, aihabitat."


def _make(module: str, name: str) -> Any:
    """Return the placeholder of a name."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _PlaceholderType(name, (), {"__module__": module})


class _Module(types.ModuleType):
    """Represents a module with a placeholder for every name."""

    @override
    def __getattr__(self, name: str) -> Any:
        made = _make(self.__name__, name)
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the missing modules and all modules below them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    @override
    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a placeholder."""
        if fullname.partition(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    @override
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    @override
    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing, because a placeholder has no code."""


@contextlib.contextmanager
def importing() -> Iterator[list[str]]:
    """Make imports of missing modules succeed inside the context.

    Yields:
        The names of the modules that are missing.
    """
    missing = [name for name in NAMES if not _is_there(name)]
    finder = _Finder(missing)
    sys.meta_path.append(finder)
    _PlaceholderType._are_closed = False
    try:
        yield missing
    finally:
        _PlaceholderType._are_closed = True
        sys.meta_path.remove(finder)


def _is_there(name: str) -> bool:
    """Return whether a module is installed and is not a placeholder."""
    if name in sys.modules:
        return not isinstance(sys.modules[name], _Module)
    return importlib.util.find_spec(name) is not None
