"""Implements a cell: a fork of the server that runs one program and ends.

A cell is made in advance, so that a program does not wait for it. All code up to the program's
first line is trusted; after `lockdown.apply`, no code is trusted.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from . import kernel, landlock, lockdown, namespaces, program, seccomp, wire
from .root import WORKSPACE

_KEPT = 100  # of the request socket, so that the program's descriptors start at 3


class CellSettings(NamedTuple):
    """Holds the settings that all cells of a server share.

    Attributes:
        namespaces: Whether a cell has its own namespaces, with a file system for its files.
        landlock: Whether Landlock restricts its files.
        seccomp: Whether seccomp filters its system calls.
        proc: A descriptor of /proc.
        libraries: Paths that it may read.
        scratch: Directory of its files, if it has no file system of its own.
        capabilities: Capabilities that it needs to read the libraries.
        address_space: Bytes of address space that the server uses.
    """

    namespaces: bool
    landlock: bool
    seccomp: bool
    proc: int
    libraries: tuple[str, ...]
    scratch: str
    capabilities: int
    address_space: int


def live(setting: CellSettings, request: socket.socket, output: int, name: str) -> NoReturn:
    """Wait for a program, run it, and end the process.

    Args:
        setting: Settings of the server.
        request: Socket from which the program is received.
        output: Descriptor for its standard output and error.
        name: Name of this cell and of its directory.
    """
    try:
        request = _alone(setting, request, output)
        work, lock = _prepare(setting, name)
        if not select.select([request], [], [], 0)[0]:
            program.rehearse()  # while no client waits
        message, descriptors = wire.receive(request)
        if not message:
            os._exit(0)
        asked = wire.decode(message)
        _enter(work, setting.namespaces, asked)
        code, names, mapped = _take(asked, descriptors, work)
        lock = lock._replace(address_space=lock.address_space + mapped)
        lockdown.apply(lock, asked["limits"])
        os.write(request.fileno(), wire.begun())
        request.close()
    except BaseException as error:  # noqa: BLE001  every failure is reported to the client
        _give_up(request, error)
    program.run(code, names, f"{work}/{asked['output']}", asked["limits"])


def _alone(setting: CellSettings, request: socket.socket, output: int) -> socket.socket:
    """Detach from the server: close its descriptors except one socket, which becomes number 100."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if setting.namespaces:
        namespaces.map_nobody(setting.proc, os.getuid(), os.getgid())
    for standard in (1, 2):
        os.dup2(output, standard)
    os.dup2(request.detach(), _KEPT, inheritable=False)
    os.closerange(3, _KEPT)
    os.closerange(_KEPT + 1, os.sysconf("SC_OPEN_MAX"))
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.close(3)
    return socket.socket(fileno=_KEPT)


def _prepare(setting: CellSettings, name: str) -> tuple[str, lockdown.LockdownRules]:
    """Prepare a cell before the program arrives: make its directory and its `LockdownRules`."""
    if setting.namespaces:
        work, own = WORKSPACE, (WORKSPACE.rpartition("/")[0], landlock.OWN)
    else:
        work = f"{setting.scratch}/{name}"
        Path(work).mkdir(0o700)
        own = work, landlock.CHANGE  # no limit on their number, so no new files
    files = None
    if setting.landlock:
        rules = landlock.ruleset([*lockdown.library_rules(setting.libraries), own])
        files = fcntl.fcntl(rules, fcntl.F_DUPFD_CLOEXEC, _KEPT)
        os.close(rules)
    kernel.bound_capabilities()
    _renew()
    calls = None
    if setting.seccomp:
        calls = seccomp.cached_program(os.getpid(), private=setting.namespaces)
    lock = lockdown.LockdownRules(
        files, calls, setting.namespaces, setting.capabilities, setting.address_space
    )
    return work, lock


def _renew() -> None:
    """Reset the interpreter's streams, arguments, random state and environment variables."""
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout = sys.stderr = os.fdopen(
        1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    sys.argv, sys.orig_argv = [""], ["python"]
    random.seed(0)  # a fork reseeds `random`; the state of numpy is the server's
    os.environ.clear()
    os.environ.update(PATH="/usr/bin", LANG="C.UTF-8", OMP_NUM_THREADS="1")
    gc.enable()


def _enter(work: str, own_files: bool, asked: Mapping[str, Any]) -> None:
    """Prepare the program's directory and change to it."""
    limits = asked["limits"]
    if own_files:
        size = limits["disk_bytes"] + asked["input_bytes"]
        options = f"size={size},nr_inodes={limits['files']},mode=700"
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("tmpfs", work, "tmpfs", flags, options)
    else:
        Path(work, asked["output"]).touch(0o600)
    os.chdir(work)
    os.environ.update(HOME=work, TMPDIR=work)


def _take(
    asked: Mapping[str, Any], descriptors: Sequence[int], work: str
) -> tuple[str, dict[str, Any], int]:
    """Return the program's text, its arrays by name, and the number of bytes mapped for them.

    Only the memory files of its results stay open.
    """
    results, (code, *inputs) = descriptors[:3], descriptors[3:]
    if results != [wire.REPORT, wire.PIXELS, wire.FILE]:
        raise OSError(f"descriptors arrived as {results}")
    with os.fdopen(code, "rb") as file:
        text = file.read().decode("utf-8", "surrogatepass")
    names: dict[str, Any] = {}
    mapped = 0
    for (name, *shape), source in zip(asked["inputs"], inputs, strict=True):
        if shape:
            names[name] = _array(source, shape)
            mapped += names[name].nbytes
        else:
            _copy(source, Path(work, name))
        os.close(source)
    return text, names, mapped


def _array(source: int, shape: Sequence[int]) -> Any:
    """Return the pixels in a memory file without a copy; writing to a page copies that page.

    `mmap` is not used, because it keeps a descriptor of the file.
    """
    import numpy as np

    size = shape[0] * shape[1] * shape[2]
    readable_and_writable, private = 1 | 2, 2  # PROT_READ | PROT_WRITE, MAP_PRIVATE
    address = kernel.syscall("mmap", 0, size, readable_and_writable, private, source, 0)
    memory = memoryview((ctypes.c_uint8 * size).from_address(address))
    return np.frombuffer(memory, np.uint8).reshape(shape)  # [*shape]


def _copy(source: int, path: Path) -> None:
    left = os.fstat(source).st_size
    with path.open("wb") as file:
        while left:
            left -= os.sendfile(file.fileno(), source, None, left)


def _give_up(request: socket.socket, error: BaseException) -> NoReturn:
    try:
        os.write(request.fileno(), wire.FAILED + f"{type(error).__name__}: {error}".encode()[:1000])
    finally:
        os._exit(1)
