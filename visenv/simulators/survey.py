"""Finds the simulators of this machine: interpreter, packages, OpenGL and programs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from visenv.errors import ConfigurationError
from visenv.registration import known_names, load
from visenv.simulators.opengl import OpenGLError, choose_backend, find_library, missing_library
from visenv.simulators.settings import find_interpreter

_CODE = (
    "import json, sys\nfrom importlib.metadata import PackageNotFoundError, version\n"
    "from importlib.util import find_spec\nfound = {}\n"
    "names, modules = json.loads(sys.argv[1])\n"
    "for name in names:\n    try:\n        found[name] = version(name)\n"
    "    except PackageNotFoundError:\n        pass\n"
    "missing = [name for name in modules if find_spec(name) is None]\n"
    "print(json.dumps([sys.version.split()[0], found, missing]))"
)


class SimulatorParts(NamedTuple):
    """Describes the parts of a simulator that `survey` looks for.

    A family lists its simulators in its manifest (`visenv.family.Family.simulators`).

    Attributes:
        packages: The distributions that contain the simulator, one of which is needed.
        others: Further distributions to list.
        modules: Modules that are not on PyPI.
        without_modules: A sentence on the consequence if some of `modules` are missing.
        program: The title of a program that is needed in some cases, or ``""``.
        program_variable: The environment variable with the path of the program.
        without_program: A sentence on the consequence if the variable is not set.
    """

    packages: tuple[str, ...]
    others: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    without_modules: str = ""
    program: str = ""
    program_variable: str = ""
    without_program: str = ""


class SurveyItem(NamedTuple):
    """Describes one component that was searched for.

    Attributes:
        name: Name of the component.
        there: Whether it was found.
        detail: The version or the path of the component, or how to install it.
    """

    name: str
    there: bool
    detail: str


def survey() -> list[SurveyItem]:
    """Find the interpreter of the simulators, their packages, OpenGL and programs."""
    simulators: list[SimulatorParts] = []
    broken: list[SurveyItem] = []  # of a package; the others are still searched for
    for name in known_names("simulator"):
        try:
            simulators.append(load("simulator", name))
        except ConfigurationError as error:
            broken.append(SurveyItem(name, False, str(error)))
    programs = [_program(parts) for parts in simulators if parts.program]
    try:
        python = find_interpreter()
    except ConfigurationError as error:
        return [SurveyItem("interpreter", False, str(error)), _opengl(), *programs, *broken]
    names = [name for parts in simulators for name in (*parts.packages, *parts.others)]
    modules = [name for parts in simulators for name in parts.modules]
    version, packages, missing = _packages(python, [*dict.fromkeys(names)], modules)
    found = [SurveyItem("interpreter", bool(version), f"{python} {version}".strip())]
    for parts in simulators:
        found += _parts(parts, packages, missing)
    return [*dict.fromkeys(found), _opengl(), *programs, *broken]


def _parts(
    parts: SimulatorParts, packages: Mapping[str, str], missing: Sequence[str]
) -> Iterator[SurveyItem]:
    """Yield the packages and the missing modules of a simulator."""
    for name in (*parts.packages, *parts.others):
        if name in packages:
            yield SurveyItem(name, True, packages[name])
    if not any(name in packages for name in parts.packages):
        yield SurveyItem(parts.packages[0], False, "make simulators, or visenv simulators install")
    elif absent := [name for name in parts.modules if name in missing]:
        yield SurveyItem(", ".join(absent), False, parts.without_modules)


def _packages(
    python: str, names: Sequence[str], modules: Sequence[str]
) -> tuple[str, dict[str, str], list[str]]:
    """Return the version of an interpreter, those of its packages, and the missing modules."""
    try:
        done = subprocess.run(
            [python, "-c", _CODE, json.dumps([names, modules])],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        version, packages, missing = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return "", {}, []
    return str(version), dict(packages), list(missing)


def _opengl() -> SurveyItem:
    try:
        backend = choose_backend()
    except OpenGLError as error:
        return SurveyItem("OpenGL", False, str(error))
    library = find_library(backend) if backend in ("egl", "osmesa") else backend
    if library is None:
        return SurveyItem("OpenGL", False, missing_library(backend))
    return SurveyItem("OpenGL", True, f"{backend} ({library})")


def _program(parts: SimulatorParts) -> SurveyItem:
    path = os.environ.get(parts.program_variable, "")
    there = bool(path) and os.access(path, os.X_OK)
    return SurveyItem(parts.program, there, path or parts.without_program)
