"""Creates the virtual environment of the simulators, as ``make simulators`` does in a checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from visenv.errors import ConfigurationError, RunError
from visenv.simulators.opengl import APT_PACKAGES, find_library

_HERE = Path(__file__).parent
_LOCKS = (_HERE / "versions.txt", _HERE.parents[1] / "constraints/simulators.txt")
_OSMESA_PACKAGES = ("libosmesa6", "libglapi-mesa")
STAMP = ".packages"
"""Name of the file in the virtual environment that marks a complete installation."""


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
