"""Creates namespaces, in which the processes, mounts, networks and names of the host do not exist.

The server leaves the namespaces of the host once and drops all privileges. Each cell is then
created in its own namespaces. This works for root and for an ordinary user. Root first builds the
private root with its own rights, then becomes `NOBODY`. An ordinary user gets the required rights
from a user namespace; they apply only to that namespace.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable

from . import kernel

NOBODY = 65534
"""User and group of a program: for the kernel, if root starts the server; inside the namespace,
always."""

_SERVER = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)
CELL = kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC
"""Each cell has its own user namespace, because the limit on threads is counted per user
namespace."""


def open_proc() -> int:
    """Return a descriptor of /proc, for a process that will lose access to /proc."""
    return os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def privileged(proc: int) -> bool:
    """Return whether this process is root with root's rights.

    In a container, root may lack them.
    """
    needed = 1 << kernel.CAP_SYS_ADMIN | 1 << kernel.CAP_SETUID
    return os.geteuid() == 0 and kernel.effective_capabilities(proc) & needed == needed


def leave_host(proc: int, build_root: Callable[[], None]) -> None:
    """Leave the host's namespaces, build the private root, and drop all privileges.

    Raises:
        OSError: If the kernel refuses a step.
    """
    as_root = privileged(proc)
    if as_root:
        kernel.unshare(_SERVER)
    else:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(_SERVER | kernel.CLONE_NEWUSER)
        map_nobody(proc, user, group)
    socket.sethostname("sandbox")
    build_root()
    if as_root:
        become_nobody()
    kernel.keep_capabilities()


def become_nobody(*, kept_capabilities: int = 0) -> None:
    """Change from root to an ordinary user; this is irreversible."""
    if kept_capabilities:
        kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # A process that changed its user may write its own /proc/self/uid_map only if it is dumpable.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


def map_nobody(proc: int, user: int, group: int) -> None:
    """Map the only user and group of a new user namespace to `NOBODY`.

    Args:
        proc: A descriptor of /proc.
        user: The user number outside the namespace.
        group: The group number outside the namespace.
    """
    _write(proc, "setgroups", "deny")  # required before an ordinary user writes the group map
    _write(proc, "uid_map", f"{NOBODY} {user} 1")
    _write(proc, "gid_map", f"{NOBODY} {group} 1")


def _write(proc: int, name: str, text: str) -> None:
    try:
        file = os.open(f"self/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
    except FileNotFoundError as error:
        raise OSError(errno.ENOSYS, "/proc is not mounted") from error
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
