"""Converts the end of a process and its results into an `Execution`."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable

from visenv.sandbox.backend import Execution, SandboxLimits, Status
from visenv.sandbox.cell import ExecutionEnd
from visenv.sandbox.guest import root, wire
from visenv.sandbox.handoff import taken, taken_pixels
from visenv.types import Image

_MEMORY = re.compile(r"^(?:[\w.]+\.)?_?\w*MemoryError\b|Insufficient memory", re.MULTILINE)


_MEMORY_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
"""Memory of this machine in bytes."""


class Cleaner:
    """Removes paths of the host from text.

    Args:
        paths: Directories, which are replaced by their last component.
        scratch: Directory of the programs' directories, which get the same name.
    """

    def __init__(self, paths: Iterable[str], scratch: str) -> None:
        longest_first = sorted(paths, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first)) or "(?!)"
        self._paths = re.compile(rf"(?:{names})(?![\w.-])")
        self._scratch = re.compile(rf"{re.escape(scratch)}/[0-9a-f]{{32}}") if scratch else None

    def __call__(self, text: bytes) -> str:
        """Return the text, with invalid UTF-8 replaced."""
        clean = text.decode("utf-8", "replace")
        if self._scratch is not None:
            clean = self._scratch.sub(root.WORKSPACE, clean)
        return self._paths.sub(lambda found: found[0].rpartition("/")[2], clean)


def execution(
    ending: ExecutionEnd, memories: tuple[int, int, int], limits: SandboxLimits, clean: Cleaner
) -> Execution:
    """Return the result of a program.

    Args:
        ending: How its process ended.
        memories: The memory files of its report, pixels and image file.
        limits: The limits of the program.
        clean: Function that is applied to every text.
    """
    stopped = _stopped(ending, limits)
    report = None if stopped else wire.ProgramReport.unpack(taken(memories[0], wire.REPORT_BYTES))
    if report is not None:
        return _of_report(report, ending, memories, limits, clean)
    status, error = stopped or ("crashed", "The process ended before the program was finished.")
    return Execution(
        status,
        stdout=clean(ending.output),
        error=error,
        seconds=ending.seconds,
        cpu_seconds=ending.end.cpu if ending.end else 0.0,
        memory_bytes=1024 * ending.end.memory if ending.end else 0,
    )


def _of_report(
    report: wire.ProgramReport,
    ending: ExecutionEnd,
    memories: tuple[int, int, int],
    limits: SandboxLimits,
    clean: Cleaner,
) -> Execution:
    error = clean(report.error)
    image = _image(report, memories, limits)
    return Execution(
        status=_status(error),
        stdout=clean(ending.output),
        result=clean(report.result),
        error=error,
        image=image,
        file=None if image is None else taken(memories[2], report.file),
        image_problem=clean(report.problem),
        seconds=ending.seconds,
        # The program can write its report: values are bounded by its limits.
        cpu_seconds=min(report.cpu / 1e6, float(limits.cpu_seconds)),
        memory_bytes=min(1024 * report.memory, _MEMORY_BYTES),
    )


def _status(error: str) -> Status:
    if not error:
        return "ok"
    return "memory" if _MEMORY.search(error.rpartition("\n")[2]) else "error"


def _stopped(ending: ExecutionEnd, limits: SandboxLimits) -> tuple[Status, str] | None:
    """Return status and explanation of a process that was stopped."""
    if ending.cause == "wall":
        return "wall", f"The program was stopped: it ran for more than {limits.wall_seconds:g} s."
    if ending.cause == "output":
        return "output", f"The program was stopped: it wrote over {limits.stdout_bytes:,} bytes."
    code = 0 if ending.end is None else os.waitstatus_to_exitcode(ending.end.status)
    if ending.end is None or code == 0:
        return None
    if code > 0:
        return (
            "crashed",
            f"The process ended with exit code {code} before the program was finished.",
        )
    if code == -signal.SIGSEGV:
        # The first process of a namespace gets no SIGABRT; the C library then causes a segmentation
        # fault.
        return "crashed", "The program crashed: Segmentation fault or abort."
    if code != -signal.SIGKILL:
        return "crashed", f"The program crashed: {signal.strsignal(-code)}."
    if ending.end.cpu > limits.cpu_seconds - 0.5:
        return "cpu", f"The program was stopped: it took more than {limits.cpu_seconds} s of CPU."
    return "memory", "The program was killed, most likely because memory ran out."


def _image(
    report: wire.ProgramReport, memories: tuple[int, int, int], limits: SandboxLimits
) -> Image | None:
    """Return the pixels, if the report has valid numbers; a program may have written it."""
    pixels = report.height * report.width
    if not (0 < pixels <= limits.image_pixels and 0 < report.file <= limits.file_bytes):
        return None
    return Image.from_pixels(taken_pixels(memories[1], report.height, report.width))
