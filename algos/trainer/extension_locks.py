"""Removes the locks that interrupted compilations of PyTorch extensions have left behind.

DeepSpeed compiles its kernels at first use. If that process is killed, its lock file stays, and
every later run waits for it without a message (`torch.utils.file_baton`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from visenv.errors import RunError
from visenv.private_names import check_private_names
from visenv.terminal import printable

from .private_names import LOCK_NAMES

_logger = logging.getLogger(__name__)

_REMOTE = ("nfs", "cifs", "smb", "fuse", "lustre", "beegfs", "ceph", "gpfs", "9p", "afs")
"""Beginnings of the types of file systems that other machines may use, too."""


def clear_stale_locks(folder: Path | None = None) -> list[Path]:
    """Remove lock files of extensions whose owner has ended.

    The owner has its lock file open. It is looked for among the processes of this machine.

    Args:
        folder: The folder of compiled extensions; by default that of PyTorch.

    Returns:
        The removed files.

    Raises:
        RunError: If a lock has no owner on this machine, and its owner may be on another machine or
            the file cannot be removed; the message names the file.
    """
    locks = list(_locks(_extensions() if folder is None else folder))
    opened = _open_files() if locks else set()
    removed: list[Path] = []
    for lock in locks:
        try:
            if _identity(lock.stat()) in opened:
                continue  # a compilation is in progress
            if _is_remote(lock):
                raise RunError(
                    f"{lock} is the lock of a compilation, and no process of this machine owns it. "
                    "If none on another machine does, delete the file; otherwise this run waits "
                    "for ever."
                )
            lock.unlink()
        except FileNotFoundError:
            continue  # its owner has just ended
        except PermissionError as error:
            raise RunError(
                f"{lock} is left of a compilation that was interrupted: delete the file. This run "
                "would wait for it for ever, and has no permission to delete it."
            ) from error
        _logger.warning("removed %s, left of a compilation that was interrupted", printable(lock))
        removed.append(lock)
    return removed


def _extensions() -> Path:
    check_private_names(LOCK_NAMES)
    from torch.utils.cpp_extension import get_default_build_root

    return Path(os.environ.get("TORCH_EXTENSIONS_DIR") or get_default_build_root())


def _locks(folder: Path) -> Iterator[Path]:
    """Yield the lock files, which are at most two folders deep."""
    for pattern in ("*/lock", "*/*/lock"):
        yield from sorted(folder.glob(pattern))


def _open_files() -> set[tuple[int, int]]:
    """Return the device and inode of every file that a visible process has open."""
    found: set[tuple[int, int]] = set()
    for descriptors in Path("/proc").glob("[0-9]*/fd"):
        try:
            names = list(descriptors.iterdir())
        except OSError:
            continue  # the process has ended, or belongs to another user
        for name in names:
            try:
                found.add(_identity(name.stat()))
            except OSError:
                continue
    return found


def _identity(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _is_remote(path: Path) -> bool:
    """Return whether the file system of a file may be used by other machines."""
    best = ("", "")
    for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
        _, mounted, kind, *_ = line.split(" ")
        place = mounted.replace("\\040", " ")
        if len(place) > len(best[0]) and path.resolve().is_relative_to(place):
            best = (place, kind)
    return best[1].startswith(_REMOTE) and best[1] != "fuseblk"
