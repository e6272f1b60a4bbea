"""Writes files of tensors, and keeps the error of a full disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, cast

import torch

from visenv.disk import disk_errors


def save_tensors(value: Any, path: Path) -> None:
    """Write a value with `torch.save`, and sync the file to the disk.

    Raises:
        DiskError: If the disk is full or fails. `torch.save` alone would raise a `RuntimeError`
            about the position in the file.
    """
    with disk_errors(path), path.open("wb") as file:
        output = _Output(file)
        try:
            torch.save(value, cast("IO[bytes]", output))
        except Exception as error:
            if output.error is not None:
                raise output.error from error
            raise
        file.flush()
        os.fsync(file.fileno())


class _Output:
    """Passes bytes on to a file, and keeps the first error of the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.error: OSError | None = None
        self._file = file

    def write(self, content: bytes) -> int:
        try:
            return self._file.write(content)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            self.error = self.error or error
            raise
