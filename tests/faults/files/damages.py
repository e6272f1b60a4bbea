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


def _another_digit(path: Path) -> None:
    """Change a digit, so that a text file can still be parsed."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    places = (*range(middle, len(content)), *range(middle))
    place = next((each for each in places if content[each] in b"23456789"), None)
    if place is None:
        _flipped(path)
        return
    content[place] ^= 1  # 2 and 3, 4 and 5, 6 and 7, 8 and 9
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: os.truncate(path, 0),
    "half of the file": _half,
    "one bit": _flipped,
    "another digit": _another_digit,
    "deleted": Path.unlink,
}
"""Functions by name that damage a file."""
