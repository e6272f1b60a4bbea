"""Damages files as a disk, a transfer or a power cut can."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def _half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: os.truncate(path, 0),
    "half of the file": _half,
    "one bit": _flipped,
    "deleted": Path.unlink,
}
"""Functions by name that damage a file."""
