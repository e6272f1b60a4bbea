"""Keeps a long run alive when its standard output or standard error is closed or full.

If a reader ends (``visenv train | head``), a terminal is closed or a disk is full, writing a line
of output raises `OSError`. In a training run such an error would lose the work since the last
checkpoint. Inside `lasting_output`, the line is lost instead, and the run goes on.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NAMES = {1: "standard output", 2: "standard error"}


@contextmanager
def lasting_output(*, report: bool = True) -> Iterator[None]:
    """Ignore errors of writing to standard output and standard error inside the block.

    The first error of a stream is reported on the other one. If writing succeeds again later, a
    line says how much was lost. Streams that a program has replaced, for example those of Jupyter,
    stay as they are. Descriptors that are closed at the start are opened on ``/dev/null``, so that
    no other file gets their numbers.

    Args:
        report: Whether the first error is reported.
    """
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _lasting(before[0], 1, report), _lasting(before[1], 2, report)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError, ValueError):
                    stream.flush()
        sys.stdout, sys.stderr = before


class _LastingFile(io.FileIO):
    """Writes to an open descriptor, and drops bytes that cannot be written.

    Descriptor 1 or 2 stays open. With `report`, the first error is reported on the other one.
    """

    def __init__(self, descriptor: int, report: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._report = report
        self._lost = 0
        self._reason = ""

    @override
    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        try:
            if self._lost:
                notice = f"visenv: {self._lost} bytes of output were lost: {self._reason}\n"
                self._write(notice.encode())
                self._lost = 0
            return self._write(data)
        except OSError as error:
            self._lost += size
            if not self._reason:
                self._reason = error.strerror or str(error)
                self._report_error()
            return size

    def _write(self, data: ReadableBuffer) -> int:
        while True:
            written: int | None = super().write(data)
            if written is not None:
                return written
            select.select([], [self], [])  # a descriptor of the mode O_NONBLOCK is busy

    def _report_error(self) -> None:
        """Report the first error, without the buffer of a stream, which may be in use."""
        if not self._report:
            return
        text = (
            f"visenv: {_NAMES[self.fileno()].capitalize()} cannot be written ({self._reason}). The "
            "run goes on, and its files are complete.\n"
        )
        with suppress(OSError):
            os.write(3 - self.fileno(), text.encode())


def _lasting(stream: Any, descriptor: int, report: bool) -> Any:
    """Return a stream for a descriptor that ignores errors, or `stream` if it was replaced."""
    if type(stream) is not io.TextIOWrapper or isinstance(_raw(stream), _LastingFile):
        return stream
    try:
        if stream.fileno() != descriptor:
            return stream
        stream.flush()
    except (OSError, ValueError):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_LastingFile(descriptor, report)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _raw(stream: io.TextIOWrapper) -> Any:
    return getattr(stream.buffer, "raw", None)


def _open_closed_descriptors() -> None:
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is `descriptor`. Children inherit the descriptor, as usual.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
