"""Locks the folder of a run."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from visenv.disk import disk_errors
from visenv.errors import DiskError, RunError
from visenv.files import check_no_link, output_folder

_NO_LOCKS = "The file system may have no locks: use a folder on another one, such as a local disk."


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder of a run for this process, and create it if necessary.

    The operating system releases the lock of a process that dies.

    Raises:
        RunError: If another process has locked the folder.
        ConfigurationError: If the folder or the file of the lock is a link.
        DiskError: If the file cannot be locked, for example because the file system has no locks.
    """
    output_folder(folder)
    check_no_link(folder / "run.lock")
    path = folder / "run.lock"
    lock = FileLock(path, blocking=False)
    try:
        with disk_errors(path):
            lock.acquire()
    except Timeout:
        raise RunError(f"Another process trains in {folder}: wait for it, or stop it.") from None
    except DiskError as error:
        if error.errno != errno.ENOLCK:
            raise
        raise error.with_advice(_NO_LOCKS) from error
    try:
        yield
    finally:
        lock.release()
