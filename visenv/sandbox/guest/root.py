"""Builds private file systems for programs: a root in memory, or a scratch directory.

It has no /proc, /sys, /etc, /home, /root or /tmp, so that a program finds no data of the host.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from . import kernel
from .libraries import DEVICES, Libraries

_PREFIX = "visenv-sandbox-"

_IN_MEMORY = Path("/dev/shm")

_SECONDS_TO_LOCK = 60.0

WORKSPACE = "/sandbox/work"
"""Mount point of each program's own file system."""

_OLD = "/old"

_FLAGS = {
    "ro": kernel.MS_RDONLY,
    "nosuid": kernel.MS_NOSUID,
    "nodev": kernel.MS_NODEV,
    "noexec": kernel.MS_NOEXEC,
}


def make_scratch() -> str:
    """Return a directory, in memory if possible, which the client removes later.

    The function also removes the directories of killed clients and servers. Their locks are free,
    because a process loses its locks when it ends.
    """
    parent = _IN_MEMORY if _is_roomy(_IN_MEMORY) else None
    made = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    fcntl.flock(os.open(made, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_EX)  # until this process ends
    for old in Path(made).parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            _remove_if_left(old)
    return made


def _is_roomy(directory: Path) -> bool:
    """Return whether the directory is writable and has space.

    In a container it may have only 64 MB.
    """
    return os.access(directory, os.W_OK) and shutil.disk_usage(directory).free > 1 << 30


def _remove_if_left(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.time() - os.fstat(directory).st_mtime > _SECONDS_TO_LOCK:
            shutil.rmtree(path)
    finally:
        os.close(directory)


def build(libraries: Libraries, proc: int) -> None:
    """Build the root and move into it.

    The caller must have its own mount namespace, with rights in it.

    Args:
        libraries: The paths of the host that are visible.
        proc: A descriptor of /proc, which is not visible afterwards.

    Raises:
        OSError: If the kernel refuses a step.
    """
    # Changes of these mounts must not propagate to the host's namespace.
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    _become_root(next(path for path in ("/tmp", "/run", "/mnt", "/var") if Path(path).is_dir()))
    for path in libraries.paths:
        _show(path)
    for path in libraries.hidden:
        _empty(path)
    for path in libraries.packages:
        _show(path)
    for path in DEVICES:
        if Path(_OLD + path).exists():
            _show(path)
    for path, target in libraries.aliases:
        _link(Path(path), target)
    Path(WORKSPACE).mkdir(parents=True)
    kernel.unmount(_OLD)
    Path(_OLD).rmdir()
    _make_read_only(proc)


def _empty(path: str) -> None:
    options = "size=1m,nr_inodes=4k,mode=755"
    kernel.mount("tmpfs", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)


def _become_root(place: str) -> None:
    _empty(place)
    os.chdir(place)
    old = _OLD.lstrip("/")
    Path(old).mkdir()
    kernel.pivot_root(".", old)
    os.chdir("/")


def _show(path: str) -> None:
    """Bind a file or directory of the host at its own path."""
    source, here = Path(_OLD + path), Path(path)
    if source.is_dir():
        here.mkdir(parents=True, exist_ok=True)
    else:
        here.parent.mkdir(parents=True, exist_ok=True)
        here.touch()
    kernel.mount(str(source), path, None, kernel.MS_BIND | kernel.MS_REC)


def _link(path: Path, target: str) -> None:
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def _make_read_only(proc: int) -> None:
    """Remount everything read-only, with the mounts inside the bound directories.

    The existing flags of a mount are set again, because a user namespace may not remove them.
    """
    table = os.open("self/mountinfo", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    with os.fdopen(table, encoding="utf-8", errors="surrogateescape") as lines:
        mounts = [line.split()[4:6] for line in lines]
    for point, options in mounts:
        path = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), point)  # \040: a blank
        flags = sum(_FLAGS.get(option, 0) for option in options.split(","))
        flags |= kernel.MS_RDONLY | kernel.MS_NOSUID
        if path not in DEVICES:
            flags |= kernel.MS_NODEV
        kernel.mount("none", path, None, kernel.MS_REMOUNT | kernel.MS_BIND | flags)
