"""Finds the files of the host that a program may read: only those that its imports need.

Programs cannot read all of site-packages, which may contain data sets with answers, or files with
private paths. They can read the packages that are loaded when the server starts, the whole standard
library, and the directories of the shared libraries in use.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

# Without /dev/zero: mapping it allocates memory that no limit counts; see `seccomp`.
DEVICES = ("/dev/null", "/dev/urandom", "/dev/random")

_INSTALLED = ("site-packages", "dist-packages")
_SYSTEM = ("/etc/ld.so.cache", "/usr/share/fonts")
_LINKS = ("/lib", "/lib64", "/lib32")  # links into /usr on most systems


class Libraries(NamedTuple):
    """Lists the visible paths of the host, read-only. All paths are absolute and without links.

    Attributes:
        paths: Directories and files, none inside another.
        packages: Directories and files inside site-packages.
        hidden: Directories under `paths` that must appear empty except for `packages`.
        aliases: Links to any of these paths: link and target.
    """

    paths: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()


def find(proc: int) -> Libraries:
    """Return the libraries of this process, which must have loaded all packages for programs.

    Args:
        proc: A descriptor of /proc.
    """
    standard = _standard()
    named = {*standard, *_SYSTEM, *map(_granted, _modules()), *map(_granted, _mapped(proc))}
    found = {path: os.path.realpath(path) for path in named if Path(path).exists()}
    packages = {path for path in found.values() if _is_installed(path)}
    paths = _outermost(set(found.values()) - packages)
    places = {os.path.realpath(path) for path in sys.path if path.endswith(_INSTALLED)}
    places |= {f"{path}/{name}" for path in standard for name in _INSTALLED}
    hidden = {path for path in places if Path(path).is_dir() and _is_below(path, paths)}
    links = {path: os.path.realpath(path) for path in _LINKS} | found
    aliases = {(path, target) for path, target in links.items() if path != target}
    parts = (paths, packages, hidden, aliases)
    return Libraries(*(tuple(sorted(part)) for part in parts))  # type: ignore[arg-type]


def search_path() -> list[str]:
    """Return `sys.path` for programs: the standard library. Other packages are already loaded."""
    standard = _standard()
    wanted = {*standard, *(f"{path}/lib-dynload" for path in standard)}
    return [path for path in sys.path if path in wanted]


def without_hidden(libraries: Libraries) -> list[str]:
    """Return paths of the libraries that contain no hidden paths."""
    exact = list(libraries.packages)
    left = list(libraries.paths)
    while left:
        path = left.pop()
        if any(hidden.startswith(f"{path}/") for hidden in libraries.hidden):
            left += (entry.path for entry in os.scandir(path))
        elif path not in libraries.hidden:
            exact.append(path)
    return exact


def read_all(paths: Iterable[str]) -> None:
    """Read a byte of every file and every link at and below these paths, and list every directory.

    Most file systems record the time of the last access, if the recorded time is older than a day.
    Without this function, other programs could observe the first access by a program (finding C5).
    """
    left = [Path(path) for path in paths]
    while left:
        path = left.pop()
        with contextlib.suppress(OSError):
            if path.is_symlink():
                path.readlink()
            elif path.is_dir():
                left += path.iterdir()
            elif path.is_file():
                with path.open("rb", buffering=0) as file:
                    file.read(1)


def _standard() -> set[str]:
    return {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}


def _modules() -> Iterator[str]:
    """Return the files of imported modules, without the modules of this package."""
    own = f"{__package__}."
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not f"{name}.".startswith(own):
            yield file


def _mapped(proc: int) -> Iterator[str]:
    """Return the paths of the shared libraries that are mapped into memory."""
    maps = os.open("self/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    with os.fdopen(maps, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            words = line.rstrip("\n").split(maxsplit=5)
            if len(words) == 6 and words[5].startswith("/") and ".so" in words[5]:
                yield words[5]


def _granted(file: str) -> str:
    """Return the path to grant for this file: its package, its library directory or itself."""
    parts = file.split("/")
    for place in _INSTALLED:
        if place in parts:
            return "/".join(parts[: parts.index(place) + 2])
    return file.rpartition("/")[0] if {"lib", "lib64"} & set(parts[:-1]) else file


def _is_installed(path: str) -> bool:
    return any(f"/{place}/" in path for place in _INSTALLED)


def _is_below(path: str, outer: Iterable[str]) -> bool:
    return any(path.startswith(f"{each}/") for each in outer)


def _outermost(paths: set[str]) -> set[str]:
    return {path for path in paths if not _is_below(path, paths)}
