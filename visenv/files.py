"""Atomic writing: no reader ever finds half of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if the block ends without an error.

    Where it does not, `path` stays as it was and nothing is left behind. Each process has a path of
    its own, so that two may write the same file.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
