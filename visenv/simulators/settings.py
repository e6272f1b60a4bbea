"""Defines the settings of a simulator: its class, its interpreter and its limits."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from visenv.child_process.host import ChildLimits
from visenv.errors import ConfigurationError
from visenv.received import require_trust

INTERPRETER_VARIABLE = "VISENV_SIMULATORS"
"""Environment variable with the interpreter of simulators."""

INSTALL = "make simulators (in a checkout), or: visenv simulators install"
"""Commands that create an interpreter for simulators."""

IN_PROCESS = "in-process"
"""Value of the option ``interpreter`` that runs a simulator in this process."""


@dataclass(frozen=True, kw_only=True)
class HostLimits(ChildLimits):
    """Sets the limits that a host enforces on its simulator.

    Attributes:
        recycle_bytes: Resident memory above which a child is replaced between two episodes.
    """

    recycle_bytes: int = 3 * 2**30

    @classmethod
    def with_changes(cls, changes: Mapping[str, Any]) -> HostLimits:
        """Return the default limits with some fields changed.

        Raises:
            ConfigurationError: If a name is not a field.
        """
        try:
            return cls(**changes)
        except TypeError as error:
            raise ConfigurationError(
                f"host_limits must be fields of HostLimits, got {sorted(changes)}."
            ) from error


@dataclass(frozen=True)
class SimulatorSpec:
    """Describes a simulator and its interpreter.

    Attributes:
        target: The class as ``"module:Class"``.
        options: Options of `Simulator.start`, as JSON.
        interpreter: The Python that runs it, `IN_PROCESS`, or ``""`` for ``VISENV_SIMULATORS`` if
            set, otherwise the current one.
        limits: The limits that the host enforces.
        install: How to install its packages, for error messages.
    """

    target: str
    options: str = "{}"
    interpreter: str = ""
    limits: HostLimits = field(default_factory=HostLimits)
    install: str = INSTALL

    @classmethod
    def of(cls, target: str, options: Mapping[str, Any], **settings: Any) -> SimulatorSpec:
        """Return the spec with these options, which must be valid JSON values.

        Raises:
            UntrustedNameError: If a received file gives the interpreter (`visenv.received`).
        """
        interpreter = settings.get("interpreter", "")
        if interpreter not in ("", IN_PROCESS):
            require_trust("interpreter", str(interpreter), [str(interpreter)])
        return cls(target, json.dumps(dict(options), sort_keys=True), **settings)


def find_interpreter(option: str = "") -> str:
    """Return the interpreter of simulators.

    The interpreter is the option, otherwise ``VISENV_SIMULATORS``, otherwise ``.venv-simulators``
    of the checkout or of `default_folder`, otherwise the current interpreter.

    Raises:
        ConfigurationError: If the option or the variable does not name a program.
    """
    given = option or os.environ.get(INTERPRETER_VARIABLE, "")
    if given:
        path = Path(given)
        program = path / "bin/python" if path.is_dir() else path
        if not program.is_file() or not os.access(program, os.X_OK):
            origin = "interpreter" if option else INTERPRETER_VARIABLE
            raise ConfigurationError(
                f"{origin} must be a Python or its virtual environment, got {given!r}, which does "
                f"not exist. To make one, run {INSTALL}"
            )
        return str(program)
    for folder in (Path(__file__).parents[2] / ".venv-simulators", default_folder()):
        if (folder / "bin/python").exists():
            return str(folder / "bin/python")
    return sys.executable


def default_folder() -> Path:
    """Return the folder that ``visenv simulators install`` creates."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(data) / "visenv/simulators"
