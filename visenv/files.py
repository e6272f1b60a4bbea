"""Writes files atomically and never through a link, and finds files by names in other files.

A folder that somebody else sent can contain links under the names that visenv writes, and its files
can name any path. Code that writes uses `replacing`, `open_output` and `output_folder`. Code that
reads a name in a file uses `file_inside` or `image_name`. If a disk is full or fails, the error
names the file (`visenv.disk`).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from visenv.disk import disk_errors, sync
from visenv.errors import ConfigurationError, DataError

_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST = 200  # a temporary name is longer, and a file system allows 255 bytes
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


# ------------------------------------------------------------------------------------------ writing


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if the block ends without an error.

    The temporary file exists already, has a random name, and is in the folder of `path`. If the
    block raises, `path` remains unchanged and the temporary file is deleted. Each call uses its own
    temporary file, so that two processes can write the same file.

    Args:
        path: The file.
        durable: Whether the file is on the disk at the end of the block, also after a power cut.

    Raises:
        ConfigurationError: If `path` is a link.
        DiskError: If the disk is full or fails.
    """
    check_no_link(path)
    partial = path.with_name(f".{path.name[:_LONGEST]}.{secrets.token_hex(8)}")
    with disk_errors(path):
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            yield partial
            if durable:
                sync(partial)
            partial.replace(path)
            if durable:
                sync(path.parent)
        finally:
            with suppress(OSError):  # of a disk that has failed
                partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, UTF-8, which replaces an old one only when it is complete and on the disk.

    Raises:
        ConfigurationError: If `path` is a link.
        DiskError: If the disk is full or fails.
    """
    with replacing(path, durable=True) as partial:
        partial.write_text(text, encoding="utf-8")


def append(file: IO[bytes], path: Path, content: bytes) -> None:
    """Append to a file completely or, if the disk is full, not at all.

    Args:
        file: The file, which `open_output` opened with ``mode="ab"`` and ``buffering=0``.
        path: The path of the file, for error messages.
        content: The bytes to append.

    Raises:
        DiskError: If the disk is full or fails.
    """
    with disk_errors(path):
        start = file.tell()
        try:
            written = file.write(content)
            while written < len(content):
                written += file.write(content[written:])
        except OSError:
            with suppress(OSError):
                file.truncate(start)
            raise


def open_output(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open a file to append to it.

    Args:
        path: The file, which is created if it does not exist.
        mode: The mode of `open`.
        **options: Further arguments of `open`.

    Raises:
        ConfigurationError: If `path` is a link, or is not a regular file.
        DiskError: If the file cannot be opened.
    """
    check_no_link(path)
    with disk_errors(path):
        file = open(path, mode, opener=_open_without_links, **options)  # noqa: SIM115
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ConfigurationError(f"{path} must be a regular file; remove it, or name another file.")


def output_folder(folder: Path) -> Path:
    """Create a folder to write to, with its parents, and return it.

    Its parents may be links if the person names them; code that creates several levels calls this
    for each level.

    Raises:
        ConfigurationError: If the folder is a link.
        DiskError: If the folder cannot be created.
    """
    check_no_link(folder)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def empty_folder(folder: Path) -> Path:
    """Create an empty folder and return it; delete an old one, such as that of a killed process.

    Raises:
        ConfigurationError: If the folder is a link.
        DiskError: If the folder cannot be created.
    """
    check_no_link(folder)
    shutil.rmtree(folder, ignore_errors=True)
    with disk_errors(folder):
        folder.mkdir(parents=True)
    return folder


def check_no_link(path: Path) -> None:
    """Raise a `ConfigurationError` if a path to write to is a link."""
    if path.is_symlink():
        raise ConfigurationError(
            f"{path} is a link, and visenv does not write to a link, because a received folder can "
            "contain one. Name the real path, or remove the link."
        )


def check_no_links_in(folder: Path) -> None:
    """Raise a `ConfigurationError` if a folder is or contains a link, at any depth.

    This is for folders in which other packages choose the names of files.
    """
    check_no_link(folder)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            check_no_link(Path(parent, name))


def _open_without_links(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_LINK, 0o666)


# ------------------------------------------------------------------------------------------ reading


def file_inside(root: Path, name: object) -> Path:
    """Return the path of a file that another file names, relative to a folder.

    Args:
        root: The folder, which the person named.
        name: The name in the file; it need not exist.

    Raises:
        DataError: If `name` is not the relative path of a file below `root`, also after following
            links (`leads_inside`).
    """
    if not is_relative(name):
        raise DataError(f"the name {name!r:.200} must be a path below {root}")
    path = root / str(name)
    if _has_link(root, path) and not leads_inside(root, path):
        raise DataError(f"{path} is a link to a place outside of {root}")
    return path


def is_relative(name: object) -> bool:
    """Return whether a value is a relative path that does not leave its folder, without links."""
    if not isinstance(name, str) or "\0" in name:
        return False
    try:
        os.fsencode(name)
    except UnicodeError:  # half of a surrogate pair
        return False
    parts = Path(name).parts
    return bool(parts) and not Path(name).is_absolute() and ".." not in parts


def _has_link(root: Path, path: Path) -> bool:
    """Return whether a part of `path` below `root` is a link; this is fast for most paths."""
    part = str(root)
    for name in path.relative_to(root).parts:
        part = f"{part}/{name}"
        if os.path.islink(part):  # noqa: PTH114  five times faster than Path.is_symlink
            return True
    return False


def leads_inside(root: Path, path: Path) -> bool:
    """Return whether a path stays in a folder after following links.

    A data set of the Hugging Face Hub is a folder of links to files of the same download
    (``<repository>/snapshots/<commit>`` and ``<repository>/blobs``); these count as inside.
    """
    target = Path(os.path.realpath(path))
    inside = Path(os.path.realpath(root))
    if target.is_relative_to(inside):
        return True
    blobs = _blobs_of(inside)
    return blobs is not None and target.parent == blobs


def _blobs_of(folder: Path) -> Path | None:
    """Return the folder of the files of a snapshot of the hub, or None for any other folder."""
    for commit in (folder, *folder.parents):
        if commit.parent.name == "snapshots":
            blobs = commit.parent.with_name("blobs")
            return blobs if blobs.is_dir() and not blobs.is_symlink() else None
    return None


def is_image_name(name: str) -> bool:
    """Return whether a file has the name of a saved image."""
    return name.endswith(".png") and _SHA256.fullmatch(name.removesuffix(".png")) is not None


def image_name(sha256: object) -> str:
    """Return the name of the file of a saved image.

    Args:
        sha256: The hash of its pixels, as an episode contains it.

    Raises:
        DataError: If it is not a SHA-256 in hexadecimal digits.
    """
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        # The name is not repeated: a report would contain it.
        given = f"{len(sha256)} characters" if isinstance(sha256, str) else type(sha256).__name__
        raise DataError(f"an image is named by its SHA-256, 64 hexadecimal digits, got {given}")
    return f"{sha256}.png"
