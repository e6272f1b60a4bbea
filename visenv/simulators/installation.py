"""Finds the simulators of this machine, and creates the virtual environment of all simulators."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from visenv.errors import ConfigurationError, RunError
from visenv.registration import known_names, load
from visenv.simulators.opengl import (
    APT_PACKAGES,
    OpenGLError,
    choose_backend,
    find_library,
    missing_library,
)
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

_HERE = Path(__file__).parent

_LOCKS = (_HERE / "versions.txt", _HERE.parents[1] / "constraints/simulators.txt")

_OSMESA_PACKAGES = ("libosmesa6", "libglapi-mesa")

STAMP = ".packages"
"""Name of the file in the virtual environment that marks a complete installation."""


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


def lock_file() -> Path:
    """Return the file with the package versions, of the wheel or of the checkout.

    Raises:
        ConfigurationError: If there is no such file.
    """
    for path in _LOCKS:
        if path.is_file():
            return path
    raise ConfigurationError("This installation lacks constraints/simulators.txt; reinstall it.")


def install(
    folder: Path, torch_index: str | None = None, say: Callable[[str], None] = print
) -> Path:
    """Create the virtual environment, unless it is complete, and return its interpreter.

    Args:
        folder: The virtual environment; an incomplete one is created again.
        torch_index: The package index of PyTorch's CPU build; None uses the index of pip.
        say: Function that is called with a line of text for each step.

    Raises:
        RunError: If a package cannot be installed.
        OSError: If the disk is full.
    """
    python = folder / "bin/python"
    lock = lock_file()
    text = lock.read_text(encoding="utf-8")
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") in ("", text):
        say(f"{folder} is complete.")
    else:
        say(f"installing LIBERO, habitat-lab and ai2thor in {folder} (3 GB)")
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
        torch = next(line for line in text.splitlines() if line.startswith("torch=="))
        index = ["--index-url", torch_index] if torch_index else []
        _run([*pip, *index, torch])
        _run([*pip, "--requirement", str(lock)])
        stamp.write_text(text, encoding="utf-8")
    if find_library("osmesa") is None:
        say("unpacking OSMesa")
        unpack_osmesa(folder / "osmesa")
    return python


def unpack_osmesa(folder: Path) -> None:
    """Download OSMesa's Debian packages and unpack them, which requires no root.

    Raises:
        RunError: If this fails; the message names the package to install instead.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        depends = _run(["apt-cache", "depends", "libosmesa6"])
        llvm = [word for word in depends.split() if word.startswith("libllvm")]
        _run(["apt-get", "download", *_OSMESA_PACKAGES, *llvm], folder)
        for package in sorted(folder.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(folder)])
            package.unlink()
    except RunError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise RunError(
            f"OSMesa could not be unpacked ({error}) Install it with: apt-get install "
            f"{APT_PACKAGES['osmesa']}"
        ) from error


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=1800
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{command[0]} cannot be run: {error}.") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise RunError(f"{' '.join(command[:6])} … failed: {' / '.join(lines)}.")
    return done.stdout
