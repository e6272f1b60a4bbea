"""Records the origin of a file: versions of packages, and the git commit of visenv."""

from __future__ import annotations

import inspect
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_ALWAYS = ("visenv", "gymnasium", "numpy")
_WHEN_IMPORTED = ("torch", "transformers", "vllm")
_GIT_SECONDS = 10.0


def provenance() -> dict[str, Any]:
    """Return the time, the versions and the commit of this process, JSON-like.

    Returns:
        ``started`` (UTC, ISO 8601); ``versions`` of Python, visenv, Gymnasium and NumPy, and of
        torch, transformers and vllm if they are imported; ``commit``, the commit of the git
        checkout that visenv was imported from, or None; and ``modified``, whether tracked files of
        that checkout were changed, or None.
    """
    commit = _git("rev-parse", "HEAD") if _git("ls-files", "__init__.py") else None
    changes = None if commit is None else _git("status", "--porcelain", "--untracked-files=no")
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "commit": commit,
        "modified": None if changes is None else bool(changes),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that influence results, by name."""
    names = [*_ALWAYS, *(name for name in _WHEN_IMPORTED if name in sys.modules)]
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # visenv is imported from a folder and was not installed
        return str(getattr(sys.modules.get(name), "__version__", "unknown"))


def _git(*words: str) -> str | None:
    """Return the output of git for the folder of visenv, or None if git fails."""
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def arguments_of(made: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the class of an object and all arguments of its constructor, including defaults.

    Args:
        made: The object.
        given: The keyword arguments that were passed to its class.

    Returns:
        ``class`` and ``arguments``, JSON-like; values that JSON cannot represent are written as
        their `repr`.
    """
    kind = type(made)
    arguments = {
        name: parameter.default
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    arguments |= given
    return {
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "arguments": json.loads(json.dumps(arguments, default=repr)),
    }
