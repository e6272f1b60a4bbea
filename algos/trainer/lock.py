"""Locks the folder of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from visenv.errors import RunError
from visenv.files import check_no_link, output_folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder of a run for this process, and create it if necessary.

    The operating system releases the lock of a process that dies.

    Raises:
        RunError: If another process has locked the folder.
        ConfigurationError: If the folder or the file of the lock is a link.
    """
    output_folder(folder)
    check_no_link(folder / "run.lock")
    lock = FileLock(folder / "run.lock", blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(f"Another process trains in {folder}: wait for it, or stop it.") from None
    try:
        yield
    finally:
        lock.release()
