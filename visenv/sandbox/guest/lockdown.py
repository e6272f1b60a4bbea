"""Restricts a process before it runs a program.

All steps are irreversible, and their order matters.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import kernel, landlock, seccomp
from .libraries import DEVICES

_STACK_BYTES = 8 << 20


class LockdownRules(NamedTuple):
    """Holds the restrictions besides limits and privileges, which are always restricted.

    Attributes:
        files: A Landlock ruleset; None if the kernel has no Landlock.
        calls: A seccomp filter; None if the kernel has no seccomp.
        threads: Whether threads can be started; only true if their number is limited.
        capabilities: Capabilities that the process keeps, as bits.
        address_space: Bytes of address space in use before the program runs.
    """

    files: int | None
    calls: bytes | None
    threads: bool
    capabilities: int
    address_space: int


def apply(lock: LockdownRules, limits: Mapping[str, int]) -> None:
    """Apply all restrictions to the calling process.

    Args:
        lock: The layers to apply.
        limits: ``cpu_seconds``, ``memory_bytes``, ``disk_bytes``, ``descriptors``, ``threads``.

    Raises:
        OSError: If the kernel refuses a step.
    """
    _limit(lock, limits)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # no other process may inspect this one
    kernel.keep_capabilities(lock.capabilities)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if lock.files is not None:
        landlock.enforce(lock.files)
        os.close(lock.files)
    if lock.calls is not None:
        seccomp.install(lock.calls)


def library_rules(paths: Sequence[str]) -> list[tuple[str, int]]:
    """Return Landlock rules that permit reading libraries and using the devices."""
    rules = [(path, landlock.READ) for path in paths]
    return rules + [(path, landlock.READ_FILE | landlock.WRITE_FILE) for path in DEVICES]


def _limit(lock: LockdownRules, limits: Mapping[str, int]) -> None:
    values = {
        # The kernel kills the process at the hard limit. A program could ignore the signal of a
        # lower soft limit.
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_AS: lock.address_space + limits["memory_bytes"],
        resource.RLIMIT_FSIZE: limits["disk_bytes"],
        resource.RLIMIT_NOFILE: limits["descriptors"],
        resource.RLIMIT_STACK: _STACK_BYTES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 64,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }
    if lock.threads:
        values[resource.RLIMIT_NPROC] = 1 + limits["threads"]
    for which, value in values.items():
        resource.setrlimit(which, (value, value))
