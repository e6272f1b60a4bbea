"""Syncs files to disk, and names the file and the free space in errors of the disk.

The operating system reports a full disk, an error of the hardware or a read-only file system
without the name of the file if the file is open already. `disk_errors` adds the name.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visenv.errors import DiskError

_DISK_ERRORS = frozenset(
    getattr(errno, name)
    for name in (
        *("ENOSPC", "EDQUOT", "EIO", "EROFS", "EFBIG", "ENODEV", "ENXIO", "ESTALE", "ENOLCK"),
        *("EMFILE", "ENFILE", "ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "ENAMETOOLONG"),
        *("EOPNOTSUPP", "ENOSYS"),
    )
    if hasattr(errno, name)
)
"""The numbers of errors that a disk or a file system causes."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The numbers of the errors of a full disk."""

_TORCH_ERROR = re.compile(r"iostream error|unexpected pos|PytorchStreamWriter failed")
"""A part of the message of `torch.save` if a write failed, which contains no number."""

_NEARLY_FULL = 2**20
"""Free bytes of a disk that was probably full when a write failed."""

_RUST_ERROR = re.compile(r"\(os error (\d+)\)")
"""The number of a system error in a message of safetensors or tokenizers."""


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Name a file in the errors of the disk that are raised while it is written.

    Args:
        path: The file or the folder that is written inside the block.

    Raises:
        DiskError: In place of an `OSError` of the disk, or of an error of safetensors or tokenizers
            with the number of such an error. An error that names another file is not changed.
    """
    try:
        yield
    except Exception as error:
        number = _number(error, path)
        if number not in _DISK_ERRORS or isinstance(error, DiskError):
            raise
        if not _is_about(error, path):
            raise
        raise disk_error(path, number) from error


def disk_error(path: Path, number: int) -> DiskError:
    """Return the error to raise if a file cannot be written.

    Args:
        path: The file.
        number: The number of the system error, such as ``errno.ENOSPC``.
    """
    free = f" ({free_space(path)})" if number in FULL else ""
    return DiskError(path, number, f"{os.strerror(number)}{free}.")


def free_space(path: Path) -> str:
    """Return how much space is free in the file system of a path, as in ``"2.1 GB are free"``."""
    try:
        found = os.statvfs(_existing(path))
    except OSError:
        return "the free space is unknown"
    free = f"{shown_bytes(found.f_bavail * found.f_frsize)} are free"
    if found.f_files and not found.f_favail:
        return f"{free}, but no more files can be created: all inodes are in use"
    return free


def free_bytes(path: Path) -> int | None:
    """Return the free bytes in the file system of a path; None if it does not report them."""
    try:
        found = os.statvfs(_existing(path))
    except OSError:
        return None
    return found.f_bavail * found.f_frsize if found.f_blocks else None


def shown_bytes(count: float) -> str:
    """Return a number of bytes with a unit, as in ``"2.1 GB"``."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, also after a power cut."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        if not path.is_dir():
            raise
        return  # a folder of others, in which a person may only create files
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync a folder.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Sync a folder, and every file and folder in it."""
    for path in (*folder.rglob("*"), folder):
        sync(path)


def _number(error: Exception, path: Path) -> int:
    """Return the number of the system error that an exception reports, or 0."""
    if isinstance(error, OSError):
        return error.errno or 0
    if _TORCH_ERROR.search(str(error)):
        free = free_bytes(path)
        return errno.EIO if free is None or free > _NEARLY_FULL else errno.ENOSPC
    found = _RUST_ERROR.search(str(error))
    return int(found[1]) if found else 0


def _is_about(error: Exception, path: Path) -> bool:
    """Return whether an error is about a path, a file in it, or its temporary file."""
    given = (getattr(error, name, None) for name in ("filename", "filename2"))
    named = [Path(os.fsdecode(each)) for each in given if isinstance(each, str | bytes | Path)]
    return not named or any(each.parent == path.parent or path in each.parents for each in named)


def _existing(path: Path) -> Path:
    """Return a path, or the nearest folder of it that exists."""
    return next((each for each in (path, *path.parents) if each.exists()), path)
