"""Mounts small file systems in memory and in files, which only root can do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@cache
def mount_problem() -> str:
    """Return why this process cannot mount a file system in memory, or ``""``."""
    with TemporaryDirectory() as folder:
        return _mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", folder) or _unmount(folder)


@cache
def image_problem() -> str:
    """Return why this process cannot mount an image of ext4, or ``""``."""
    with TemporaryDirectory() as folder:
        try:
            with ext4(Path(folder)):
                return ""
        except (OSError, subprocess.CalledProcessError) as error:
            return str(error)


@contextmanager
def memory_disk(folder: Path, **options: str | int) -> Iterator[Path]:
    """Mount a tmpfs in a folder, and yield the folder.

    Args:
        folder: The folder, which is created.
        **options: Options of the mount, such as ``size="64k"`` or ``nr_inodes=50``.
    """
    if mount_problem():
        pytest.skip(f"a small file system cannot be mounted: {mount_problem()}")
    folder.mkdir()
    joined = ",".join(f"{name}={value}" for name, value in options.items())
    assert not _mount("-t", "tmpfs", "-o", joined, "tmpfs", folder)
    try:
        yield folder
    finally:
        _unmount(folder)


@contextmanager
def ext4(folder: Path, image: Path | None = None) -> Iterator[Path]:
    """Mount an image of ext4, and yield the folder of the mount.

    Args:
        folder: The parent of the image and of the mount.
        image: The image; by default a new one of 64 MB.
    """
    mount = folder / f"mount-{len(list(folder.iterdir()))}"
    mount.mkdir()
    if image is None:
        image = folder / "disk.img"
        with image.open("wb") as file:
            file.truncate(64 * 2**20)
        subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", image], check=True)
    problem = _mount("-o", "loop", image, mount)
    if problem:
        raise OSError(problem)
    try:
        yield mount
    finally:
        _unmount(mount)


def remount(disk: Path, mode: str) -> None:
    """Make a disk read-only (``"ro"``) or writable again (``"rw"``)."""
    assert not _mount("-o", f"remount,{mode}", disk)


def fill(disk: Path, left: int) -> Path:
    """Fill a disk except for some bytes, and return the file that fills it."""
    found = os.statvfs(disk)
    path = disk / "filler"
    with path.open("wb") as file:
        file.write(b"\0" * max(0, found.f_bavail * found.f_frsize - left))
    return path


def _mount(*arguments: str | Path) -> str:
    return _problem("mount", *arguments)


def _unmount(folder: str | Path) -> str:
    return _problem("umount", folder)


def _problem(*command: str | Path) -> str:
    """Run a command, and return its error, or ``""``."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""
