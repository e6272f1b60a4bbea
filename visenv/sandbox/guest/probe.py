"""Tests which layers of isolation this machine has: tries each one in a process that then ends."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, NoReturn

from . import kernel, landlock, namespaces, root, seccomp
from .libraries import Libraries


class LayerStatus(NamedTuple):
    """Holds the name of a layer, whether it is available, and its version or the reason why not."""

    layer: str
    there: bool
    detail: str


_KINDS = {
    "mount namespace": kernel.CLONE_NEWNS,
    "pid namespace": kernel.CLONE_NEWPID,
    "network namespace": kernel.CLONE_NEWNET,
    "ipc namespace": kernel.CLONE_NEWIPC,
    "uts namespace": kernel.CLONE_NEWUTS,
    "cgroup namespace": kernel.CLONE_NEWCGROUP,
}
NAMESPACES = "private root in namespaces"
LANDLOCK = "landlock"
SECCOMP = "seccomp filter"
PRIVILEGES = "no new privileges"


def probe(proc: int) -> list[LayerStatus]:
    """Try every layer.

    Args:
        proc: A descriptor of /proc.
    """
    as_root = namespaces.privileged(proc)
    user = 0 if as_root else kernel.CLONE_NEWUSER
    found = [LayerStatus("user namespace", *_tried(lambda: kernel.unshare(kernel.CLONE_NEWUSER)))]
    for layer, kind in _KINDS.items():
        found.append(LayerStatus(layer, *_tried(partial(kernel.unshare, user | kind))))
    found.append(LayerStatus(NAMESPACES, *_tried(lambda: _private_cell(proc))))
    there, detail = _tried(_landlocked)
    found.append(
        LayerStatus(LANDLOCK, there, landlock.described(landlock.abi()) if there else detail)
    )
    found.append(LayerStatus(SECCOMP, *_tried(_filtered)))
    found.append(
        LayerStatus(PRIVILEGES, *_tried(lambda: kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)))
    )
    return found


def in_child(act: Callable[[], object]) -> str:
    """Run a function in a forked child; return the error, empty if there was none."""
    said, say = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _do(act, say)
    os.close(say)
    with os.fdopen(said, "rb") as pipe:
        complaint = pipe.read().decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return complaint or ("" if status == 0 else f"ended with {status}")


def _do(act: Callable[[], object], say: int) -> NoReturn:
    code = 1
    try:
        act()
        code = 0
    except BaseException as error:  # noqa: BLE001  reported to the parent
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        os.write(say, why.encode()[:500])
    finally:
        os._exit(code)


def _tried(act: Callable[[], object]) -> tuple[bool, str]:
    complaint = in_child(act)
    return not complaint, complaint


def _private_cell(proc: int) -> None:
    """Do everything that a cell in namespaces does, with an empty root."""
    namespaces.leave_host(proc, lambda: root.build(Libraries(), proc))
    pid = kernel.fork_into(namespaces.CELL)
    if pid == 0:
        _do(lambda: _mount(proc), os.open("/dev/null", os.O_WRONLY))
    if os.waitpid(pid, 0)[1]:
        raise OSError(errno.EPERM, "a process in namespaces of its own cannot mount")


def _mount(proc: int) -> None:
    namespaces.map_nobody(proc, os.getuid(), os.getgid())
    kernel.mount("tmpfs", root.WORKSPACE, "tmpfs", kernel.MS_NOSUID, "size=64k")


def _landlocked() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    landlock.enforce(landlock.ruleset([]))
    _must_fail(lambda: os.scandir("/").close())


def _filtered() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(seccomp.program(os.getpid(), private=False))
    _must_fail(lambda: os.kill(os.getpid(), 0))


def _must_fail(act: Callable[[], object]) -> None:
    try:
        act()
    except PermissionError:
        return
    raise OSError(errno.ENOSYS, "accepted, and without effect")
