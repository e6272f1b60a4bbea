"""Calls functions of Linux that the standard library does not have, by ctypes.

The constants have the names of the kernel's headers: ``linux/sched.h`` (CLONE_*), ``linux/mount.h``
(MS_*, MNT_*), ``linux/prctl.h`` (PR_*), ``linux/capability.h`` (CAP_*).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
from typing import Any

from . import syscalls

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x4_0000
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

CAP_DAC_READ_SEARCH = 2
CAP_SETUID = 7
CAP_SYS_ADMIN = 21

_CAPABILITY_VERSION_3 = 0x2008_0522
_KEYCTL_JOIN_SESSION_KEYRING = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
# The same library, but its calls keep the interpreter's lock, which `clone` requires.
_locked_libc = ctypes.PyDLL(None, use_errno=True)
_locked_libc.syscall.restype = ctypes.c_long


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _words(arguments: tuple[Any, ...]) -> list[Any]:
    """Convert arguments for the kernel; ctypes passes a plain Python int as 32 bits."""
    return [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]


def syscall(name: str, *arguments: Any) -> int:
    """Make a system call by its name in `syscalls.TABLE`.

    Args:
        name: The call.
        *arguments: ints, bytes (passed by address), ctypes objects or None.

    Raises:
        OSError: If the call fails.
    """
    number = syscalls.number(name)
    return _checked(_libc.syscall(ctypes.c_long(number or -1), *_words(arguments)), name)


def prctl(option: int, *arguments: Any) -> None:
    """Change an attribute of this process.

    Raises:
        OSError: If the kernel refuses.
    """
    padded = (*arguments, 0, 0, 0, 0)[:4]
    _checked(_libc.prctl(option, *_words(padded)), f"prctl {option}")


def unshare(kinds: int) -> None:
    """Move this process from its namespaces of these kinds to new ones."""
    syscall("unshare", kinds)


def mount(
    source: str, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    """Mount a file system, or change a mount."""
    words = [None if word is None else word.encode() for word in (source, target, kind, options)]
    try:
        syscall("mount", words[0], words[1], words[2], flags, words[3])
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({source} on {target})") from None


def unmount(target: str) -> None:
    """Detach a mount and everything below it; the kernel removes it when it is no longer used."""
    syscall("umount2", target.encode(), MNT_DETACH)


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root directory, and move the previous root to `old`."""
    syscall("pivot_root", new.encode(), old.encode())


def fork_into(kinds: int) -> int:
    """Fork a child into new namespaces of these kinds; return 0 in the child.

    The child becomes process 1 of a new pid namespace only if it is created there; `unshare` moves
    only the later children of the caller. The process must have one thread.
    """
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid: int = _locked_libc.syscall(
        ctypes.c_long(syscalls.number("clone") or -1),
        *_words((kinds | signal.SIGCHLD, 0, 0, 0, 0)),
    )
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        code = ctypes.get_errno()
        python.PyOS_AfterFork_Parent()
        if pid < 0:
            raise OSError(code, f"clone: {os.strerror(code)}")
    return pid


def effective_capabilities(proc: int) -> int:
    """Return the effective capabilities of this process as bits, by a descriptor of /proc."""
    file = os.open("self/status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    with os.fdopen(file, encoding="ascii", errors="replace") as lines:
        return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))


def bound_capabilities() -> None:
    """Empty the bounding set, so that dropped capabilities cannot be regained."""
    capability = 0
    while _libc.prctl(PR_CAPBSET_DROP, *_words((capability, 0, 0, 0))) == 0:
        capability += 1  # ends after the last capability, or at once without permission


def keep_capabilities(kept: int = 0) -> None:
    """Drop every capability whose bit is not set in `kept`.

    Raises:
        OSError: If the kernel refuses.
    """
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    low, high = kept & 0xFFFF_FFFF, kept >> 32
    # Effective, permitted, inheritable: first the lower half of each, then the upper half.
    # Capabilities that are not permitted and inheritable also leave the ambient set.
    syscall("capset", header, struct.pack("=6I", low, low, 0, high, high, 0))


def leave_keyring() -> None:
    """Start an empty session keyring, if the kernel has keyrings and permits it."""
    with contextlib.suppress(OSError):  # seccomp also refuses all calls of programs that use keys
        syscall("keyctl", _KEYCTL_JOIN_SESSION_KEYRING, None)
