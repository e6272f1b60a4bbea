"""Defines the base class of the decoders that run in a child process."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

Arrays = Mapping[str, Any]
"""NumPy arrays, and bytes as `memoryview`, by name."""

SourceT = TypeVar("SourceT")


class ContentError(Exception):
    """Raised if the bytes cannot be decoded; the text is the end of a sentence about them."""

    key = "problem"
    """Key of the text in the result."""


class MissingContentError(Exception):
    """Raised if the child does not have the content of a source, which the host then sends."""


class DecoderTarget:
    """Calls a method for each request: ``method(request, arrays) -> (result, arrays)``.

    A `ContentError` is the result ``{"problem": text}``. The child continues after it. Any other
    exception ends the child, because the library may be in any state. A subclass has the method
    `start` of `visenv.child_process.program.Target`, which imports the library.
    """

    def close(self) -> None:
        """Do nothing; the end of the process releases everything."""

    def answer(self, calls: list[Any], arrays: Arrays) -> tuple[list[Any], dict[str, Any]]:
        """Answer the only call of a request."""
        ((name, request),) = calls
        method: Callable[[Any, Arrays], tuple[dict[str, Any], dict[str, Any]]]
        method = getattr(self, name)
        try:
            result, found = method(request, arrays)
        except ContentError as problem:
            return [{problem.key: str(problem)}], {}
        except MissingContentError:
            return [{"unknown": True}], {}
        return [result], found


class OpenSources(Generic[SourceT]):
    """Keeps the sources that were used last, by a key that the host chooses.

    Args:
        most: Maximum number of open sources.
        open_source: Opens the file of a path, or the content.
        close: Closes a source.
    """

    def __init__(
        self,
        most: int,
        open_source: Callable[[str | memoryview], SourceT],
        close: Callable[[SourceT], None],
    ) -> None:
        self._most, self._open_source, self._close = most, open_source, close
        self._open: OrderedDict[str, SourceT] = OrderedDict()

    def get(self, request: Mapping[str, Any], arrays: Arrays) -> SourceT:
        """Return the source of a request, opened if necessary.

        Args:
            request: ``key``, and ``path`` or None.
            arrays: The array ``content``, unless there is a path or the source is open.

        Raises:
            ContentError: If it cannot be opened.
            MissingContentError: If the content is missing.
        """
        key, path = request["key"], request["path"]
        if key not in self._open:
            if path is None and "content" not in arrays:
                raise MissingContentError
            self._open[key] = self._open_source(arrays["content"] if path is None else _file(path))
            while len(self._open) > self._most:
                self.drop(next(iter(self._open)))
        self._open.move_to_end(key)
        return self._open[key]

    def drop(self, key: str) -> None:
        """Close a source."""
        self._close(self._open.pop(key))


def _file(path: str) -> str:
    """Return the path of a regular file; the host has checked that it was one."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  pathlib is slow to import
            raise ContentError("is not a regular file")
    except OSError as error:
        raise ContentError(f"cannot be opened: {error}") from error
    return path
