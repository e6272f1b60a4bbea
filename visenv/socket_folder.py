"""Makes folders for Unix sockets that only this user can enter."""

from __future__ import annotations

import tempfile
from pathlib import Path

_PATH_BYTES = 107
"""Maximum number of bytes in the path of a socket (Linux)."""

_RANDOM_BYTES = 8
"""Bytes that `tempfile.mkdtemp` appends to a prefix."""


def socket_folder(prefix: str, name_bytes: int) -> Path:
    """Return a new folder with mode 0700 and a random name, which the caller removes.

    Other users cannot connect to sockets in the folder, whatever the mode of the sockets. Its
    parent is the folder for temporary files, or ``/tmp`` if that path is too long for sockets.

    Args:
        prefix: The beginning of the folder's name.
        name_bytes: Bytes in the longest name of a socket, relative to the folder.
    """
    parent = tempfile.gettempdir()
    needed = 2 + len(prefix) + _RANDOM_BYTES + name_bytes  # with two slashes
    if len(parent.encode()) + needed > _PATH_BYTES:
        parent = "/tmp"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
