"""Runs a decoder of foreign bytes in a child process, which may crash without an effect."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from visenv.child_process.host import ChildError, ChildLimits, ChildProcess, ChildTimeoutError
from visenv.child_process.wire import WireError
from visenv.decoding.files import regular_state
from visenv.errors import ConfigurationError
from visenv.packages import OPENCV_REMEDY

_MOST_FAILURES = 3
"""A source that stopped the decoder so often is given up. A document could otherwise use the time
limit for each of its pages."""

_REMEMBERED = 10_000

_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
"""Variables of a child. Without them, libraries reserve memory for each CPU, which counts towards
the limit."""


class DecoderError(Exception):
    """Raised if a source stopped the decoder; the text is the end of a sentence about it."""


class Source:
    """Names a file or bytes to decode.

    Args:
        key: Names the content, and changes if the content does.
        path: The file, or None.
        content: The bytes, if there is no file.
    """

    def __init__(self, key: str, path: str | None, content: bytes | None = None) -> None:
        self.key, self.path, self.content = key, path, content

    @classmethod
    def of_file(cls, path: Path) -> Source:
        """Return a file in its current state; if it changes, it is another source.

        Raises:
            FileRefusedError: If it is not a regular file.
            OSError: If it does not exist.
            ValueError: If the name contains NUL.
        """
        found = regular_state(path)
        absolute = str(path.absolute())
        return cls(f"{found.st_mtime_ns} {found.st_size} {absolute}", absolute)


class DecoderProcess:
    """Runs one kind of decoder in a child process, which all threads of this process share.

    The child is started by the first call, and again after it has ended. It decodes one source at a
    time. If a child that was used before crashes, the call is made once more in a new one. A child
    ends with this process, and a forked process starts its own.

    Args:
        name: The library, for error messages.
        target: The class of `visenv.decoding.child`, ``"module:Class"``.
        limits: The limits, with `data_bytes` and `processor_s`.
        extra: The extra of visenv that contains the library, if it is not always installed.
    """

    def __init__(self, name: str, target: str, limits: ChildLimits, extra: str = "") -> None:
        self.name = name
        self._extra = extra
        self.limits = limits
        self._target = target
        self._closes_at_exit = False
        self._child: ChildProcess | None = None
        self._closed: ChildProcess | None = None  # the child that `close` ended last
        self._forget()
        _decoders.append(self)

    def call(
        self, method: str, source: Source, **request: Any
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Call a method of the target, and return its result and its arrays.

        Args:
            method: The name of the method.
            source: The source, whose key and path are added to the request.
            request: Further values, JSON-like.

        Raises:
            DecoderError: If the decoder crashes, exceeds a limit, or did so several times for this
                source.
            ConfigurationError: If the library is not installed.
        """
        message = {**request, "key": source.key, "path": source.path}
        with self._lock:
            self._check(source)
            try:
                return self._answer_or_retry(method, message, source)
            except WireError as error:
                raise DecoderError(f"is too large for {self.name}: {error}") from error
            except ChildError as error:
                self._failures[source.key] = self._failures.get(source.key, 0) + 1
                raise DecoderError(self._reason(error)) from error

    @property
    def pid(self) -> int:
        """Return the process id of the child, 0 if none was started."""
        return 0 if self._child is None else self._child.pid

    def close(self) -> None:
        """End the child; the next call starts another one. A call that waits for it fails."""
        child = self._closed = self._child
        if child is not None:
            child.kill()
        with self._lock:
            self._drop()

    def _answer_or_retry(
        self, method: str, message: Mapping[str, Any], source: Source
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Answer a request, in a new child if a child that was used before crashes."""
        used = self._child
        try:
            return self._answer(method, message, source)
        except ChildTimeoutError:
            raise
        except ChildError:
            if used is None or used is self._closed:
                raise
        return self._answer(method, message, source)  # an earlier source may be the cause

    def _answer(
        self, method: str, message: Mapping[str, Any], source: Source
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Send a request, and again with the content if the child does not have it."""
        result, arrays = self._exchange(method, message, {})
        if result.get("unknown"):
            content = {"content": memoryview(source.content or b"")}
            result, arrays = self._exchange(method, message, content)
        return result, arrays

    def _exchange(
        self, method: str, request: Mapping[str, Any], arrays: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        child = self._running()
        try:
            (result,), found = child.call([(method, request)], arrays)
        except BaseException:  # after Ctrl-C the reply is still to come
            self._drop()
            raise
        return result, found

    def _running(self) -> ChildProcess:
        if self._child is not None and self._child.is_alive():
            return self._child
        self._drop()
        child = ChildProcess(
            self._target, {}, limits=self.limits, is_light=True, environment=_ENVIRONMENT
        )
        self._child = child
        if not self._closes_at_exit:
            atexit.register(self.close)
            self._closes_at_exit = True
        try:
            child.start()
        except ChildError as error:
            if error.report and error.report["kind"] == "setup":
                raise self._missing(error) from error
            raise
        return child

    def _missing(self, error: ChildError) -> ConfigurationError:
        package = f"the package {self.name!r}"
        if self._extra:
            package += f": pip install 'visenv[{self._extra}]'"
        elif self.name == "OpenCV":
            package += f". {OPENCV_REMEDY}"
        return ConfigurationError(f"The file needs {package}. It cannot be imported: {error}.")

    def _drop(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def _check(self, source: Source) -> None:
        failures = self._failures.get(source.key, 0)
        if failures >= _MOST_FAILURES:
            raise DecoderError(
                f"is not read any more, because it stopped {self.name} {failures} times. "
                f"{self._limits()}"
            )

    def _reason(self, error: ChildError) -> str:
        """Return the end of a sentence that names the limits."""
        cause = str(error).rstrip(".")
        if error.status is not None and error.status < 0:
            cause = f"its process ended with {signal.strsignal(-error.status)!r}"
        return f"cannot be decoded by {self.name} within its limits: {cause}. {self._limits()}"

    def _limits(self) -> str:
        return (
            f"The limits are {(self.limits.data_bytes or 0) / 2**20:,.0f} MiB of memory, "
            f"{self.limits.processor_s or 0:g} s of processor time and {self.limits.call_s:g} s"
        )

    def _forget(self) -> None:
        """Set the state of a process without a child; a forked process calls this, too."""
        self._lock = threading.Lock()
        self._child = None
        self._closed = None
        self._failures: LRUCache[str, int] = LRUCache(_REMEMBERED)

    def after_fork(self) -> None:
        """Forget the child in a forked process, to which it does not belong."""
        if self._child is not None:
            self._child.disown()
        self._forget()


_decoders: list[DecoderProcess] = []


def _after_fork_in_child() -> None:
    for decoder in _decoders:
        decoder.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
