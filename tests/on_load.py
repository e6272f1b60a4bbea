"""Provides an object that shows whether it was unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typing_extensions import override


class OnLoad:
    """Creates a file when it is unpickled.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @override
    def __reduce__(self) -> Any:
        return (Path.touch, (self._path,))
