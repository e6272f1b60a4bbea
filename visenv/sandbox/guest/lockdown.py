"""A process gives up what a program may not have. Every step is for good; their order matters."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import kernel, landlock, seccomp
from .libraries import DEVICES

_STACK_BYTES = 8 << 20


class LockdownRules(NamedTuple):
    """Holds what is locked beyond limits and privileges, which always are.

    Attributes:
        files: A Landlock ruleset; None where the kernel has no Landlock.
        calls: A seccomp filter; None where the kernel has none.
        threads: Whether threads can be started: only where something counts them.
        capabilities: Those it keeps, a bit each.
        address_space: Bytes of it the process has before the program runs.
    """

    files: int | None
    calls: bytes | None
    threads: bool
    capabilities: int
    address_space: int


def apply(lock: LockdownRules, limits: Mapping[str, int]) -> None:
    """Put everything on the calling process.

    Args:
        lock: Which layers.
        limits: ``cpu_seconds``, ``memory_bytes``, ``disk_bytes``, ``descriptors``, ``threads``.

    Raises:
        OSError: If the kernel refuses a step.
    """
    _limit(lock, limits)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # no other process may look into this one
    kernel.keep_capabilities(lock.capabilities)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if lock.files is not None:
        landlock.enforce(lock.files)
        os.close(lock.files)
    if lock.calls is not None:
        seccomp.install(lock.calls)


def library_rules(paths: Sequence[str]) -> list[tuple[str, int]]:
    """Return Landlock rules to read libraries and to use the devices."""
    rules = [(path, landlock.READ) for path in paths]
    return rules + [(path, landlock.READ_FILE | landlock.WRITE_FILE) for path in DEVICES]


def _limit(lock: LockdownRules, limits: Mapping[str, int]) -> None:
    values = {
        # At the hard limit the kernel kills. A signal at a lower soft limit could be ignored.
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
