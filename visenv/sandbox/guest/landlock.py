"""Restricts which files a process may use, by Landlock: Linux 5.13 or newer, without privileges.

Rights have the names of ``linux/landlock.h``. A ruleset handles a set of rights; the kernel refuses
each handled right that no rule grants. Landlock controls opening and making files. It does not
control stat, readlink, chdir, chmod or utime; seccomp refuses all of these except stat.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable

from . import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = 1 << 10, 1 << 11, 1 << 12
REFER = 1 << 13  # ABI 2: link or rename between directories
TRUNCATE = 1 << 14  # ABI 3
IOCTL_DEV = 1 << 15  # ABI 5
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

READ = READ_FILE | READ_DIR
CHANGE = READ | WRITE_FILE | TRUNCATE
"""Rights to read and write existing files, without making any."""
OWN = CHANGE | MAKE_DIR | MAKE_REG | REMOVE_DIR | REMOVE_FILE | REFER
"""All rights for files and directories, but not for links, devices, sockets or pipes."""

_NET = 0b11  # ABI 4: bind and connect of TCP
_SCOPE = 0b11  # ABI 6: abstract sockets and signals, to outside processes
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1


def abi() -> int:
    """Return the ABI version of the kernel, 0 if it has no Landlock."""
    try:
        return kernel.syscall("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def described(version: int) -> str:
    """Return a description of the protections of an ABI version."""
    since = {1: "files", 3: "truncation", 4: "TCP", 5: "devices", 6: "signals"}
    return f"ABI {version}: {', '.join(word for first, word in since.items() if version >= first)}"


def ruleset(grants: Iterable[tuple[str, int]]) -> int:
    """Return a descriptor of a ruleset that grants these rights at these paths and below.

    Args:
        grants: Paths and rights; paths that do not exist are omitted.

    Raises:
        OSError: If the kernel has no Landlock.
    """
    version = abi()
    handled = _handled(version)
    attributes = struct.pack("=3Q", handled, _NET * (version >= 4), _SCOPE * (version >= 6))
    size = 24 if version >= 6 else 16 if version >= 4 else 8  # older kernels know fewer fields
    descriptor = kernel.syscall("landlock_create_ruleset", attributes, size, 0)
    for path, rights in grants:
        _grant(descriptor, path, rights & handled)
    return descriptor


def enforce(descriptor: int) -> None:
    """Apply a ruleset to this thread and to all threads and processes that it starts.

    Needs ``no_new_privs``.
    """
    kernel.syscall("landlock_restrict_self", descriptor, 0)


def _handled(version: int) -> int:
    newest = 16 if version >= 5 else 15 if version >= 3 else 14 if version == 2 else 13
    return (1 << newest) - 1


def _grant(descriptor: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, place)
        kernel.syscall("landlock_add_rule", descriptor, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(place)
