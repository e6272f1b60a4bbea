"""One writer at a time: an advisory lock on a folder, gone when its process is."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from visenv.errors import ConfigurationError


class WriterLock:
    """Holds ``writer.lock`` in a folder until `release`, or until the process ends.

    Args:
        folder: An existing folder.

    Raises:
        ConfigurationError: If another holder has it, here or in another process.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "writer.lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read(20).strip() or "unknown"
            self._file.close()
            raise ConfigurationError(
                f"{folder} is being written by process {holder}; it has one writer at a time. "
                "Wait for it to close, or read with PageVectors."
            ) from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Give it up; children forked meanwhile lose it too."""
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()
