"""Makes directories for programs, if the machine does not permit a file system for each program."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "visenv-sandbox-"
_IN_MEMORY = Path("/dev/shm")
_SECONDS_TO_LOCK = 60.0


def make() -> str:
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
