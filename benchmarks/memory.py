"""Reads the resident memory of a process from Linux."""

from __future__ import annotations

from pathlib import Path


def memory_mib(field: str = "VmRSS", pid: int | str = "self") -> float:
    """Return the resident memory of a process in MiB.

    Args:
        field: ``"VmRSS"`` for the current memory, ``"VmHWM"`` for the high-water mark.
        pid: The process.

    Raises:
        LookupError: If the process has ended and has no memory.
        OSError: If there is no such process.
    """
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024
    raise LookupError(f"Process {pid} has no {field}.")
