"""Writes files atomically: no reader finds a partly written file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if the block ends without an error.

    If the block raises, `path` remains unchanged and the temporary file is deleted. Each process
    uses its own temporary path, so that two processes can write the same file.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
