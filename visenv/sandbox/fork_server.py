"""Implements the client's side of the fork server: starts it, requests cells, ends it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, NamedTuple

from visenv.errors import ConfigurationError, ServiceError
from visenv.sandbox.guest import wire

_SECONDS_TO_ANSWER = 120.0
_GUEST = Path(__file__).parent
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from guest.main import main
main(int(sys.argv[2]))
"""
# -P: do not add the script's directory to the path. -s, -S: do not run startup code of installed
# packages.
_FLAGS = ("-P", "-s", "-S")
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # programs print sets in the same order
    "OMP_NUM_THREADS": "1",  # a process with more than one thread cannot be forked safely
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Keep images in 2 MB pages if the kernel has them, because each new process faults every page
    # in again.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


class CellLostError(Exception):
    """Raised when a cell is lost and its program is not the cause.

    The program can run in another cell.
    """


class ServerHello(NamedTuple):
    """Holds the first message of a server.

    Attributes:
        mode: ``"namespaces"``, ``"landlock"`` or ``"none"``; None if the server refuses programs.
        layers: For each layer its name, whether it exists, and its version or the reason why it
            does not.
        paths: Paths of the host that must not appear in texts.
        scratch: The directory of the programs' files; empty if each program has its own file
            system.
    """

    mode: str | None
    layers: tuple[tuple[str, bool, str], ...]
    paths: tuple[str, ...] = ()
    scratch: str = ""


class ForkServer:
    """Represents a running server process. It can be used from any thread.

    Args:
        configuration: ``isolation``, ``unsafe``, ``packages``, ``only_probe``; see `guest.main`.
        ahead: Number of cells kept ready.

    Raises:
        ConfigurationError: If a package cannot be loaded.
        ServiceError: If the process cannot be started.
    """

    def __init__(self, configuration: dict[str, Any], ahead: int) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_SECONDS_TO_ANSWER)
        errors = os.memfd_create("visenv-sandbox-errors", os.MFD_CLOEXEC)
        message = wire.encode({**configuration, "installed": _installed()})
        with contextlib.ExitStack() as failing:
            failing.callback(self._control.close)
            with theirs, os.fdopen(errors):
                self._process = _started(theirs.fileno(), errors)
                failing.callback(_end, os.getpid(), self._control, self._process, "")
                theirs.close()  # only the server keeps its end open
                self.hello = _greeted(self._control, message, errors)
            failing.pop_all()
        self._finalizer = weakref.finalize(
            self, _end, os.getpid(), self._control, self._process, self.hello.scratch
        )
        self._ahead, self._coming = ahead, 0
        if self.hello.mode is not None and not configuration["only_probe"]:
            self.refill()

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    def take(self) -> list[int]:
        """Return the descriptors of a waiting cell: its request, life and output.

        Raises:
            CellLostError: If the server is gone or could not make a cell.
        """
        with self._lock:
            try:
                if not self._coming:
                    self._ask()
                message, descriptors = wire.receive(self._control)
            except OSError as error:
                raise CellLostError(f"the server cannot be reached: {error}") from error
            self._coming -= 1
        if message == wire.CELL and len(descriptors) == 3:
            return descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        why = message.removeprefix(wire.FAILED).decode("utf-8", "replace")
        raise CellLostError(f"no process could be made: {why}" if why else "the server has ended")

    def refill(self) -> None:
        """Have the server make cells up to the number kept ready.

        Call this after a program has ended.
        """
        with self._lock, contextlib.suppress(OSError):  # `take` will raise
            while self._coming < self._ahead:
                self._ask()

    def retire(self) -> None:
        """Request no more cells; the server ends after its last running cell."""
        with self._lock:
            self._control.close()  # the cells that wait end, too

    @property
    def ended(self) -> bool:
        """Return whether the process has ended; if so, reap it."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the server, and kill all its cells."""
        self._finalizer()

    def abandon(self) -> None:
        """Release the parent's server in a forked child, without ending it."""
        self._finalizer.detach()
        self._control.close()
        self._process.returncode = 0  # the process is not a child of this one: nothing to reap

    def _ask(self) -> None:
        wire.send(self._control, wire.SPAWN)
        self._coming += 1


def _installed() -> list[str]:
    """Return the package directories of this interpreter."""
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def _started(control: int, errors: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, *_FLAGS, "-c", _PROGRAM, str(_GUEST), str(control)]
    try:
        return subprocess.Popen(
            command,
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,  # Ctrl-C must reach only the client
        )
    except OSError as error:
        raise ServiceError("sandbox", f"the server cannot be started: {error}") from error


def _greeted(control: socket.socket, configuration: bytes, errors: int) -> ServerHello:
    try:
        wire.send(control, configuration)
        message, _ = wire.receive(control)
    except ConnectionError:
        message = b""
    except OSError as error:
        raise ServiceError("sandbox", f"the server did not answer: {error}") from error
    if not message:
        said = os.pread(errors, 4000, 0).decode("utf-8", "replace").strip()
        raise ServiceError("sandbox", f"the server ended at its start. {said}")
    values = wire.decode(message)
    if "error" in values:
        raise ConfigurationError(f"The sandbox cannot start:\n{values['error']}")
    layers = tuple((name, there, detail) for name, there, detail in values["layers"])
    return ServerHello(
        values["mode"], layers, tuple(values.get("paths", ())), values.get("scratch", "")
    )


def _end(
    owner: int, control: socket.socket, process: subprocess.Popen[bytes], scratch: str
) -> None:
    """Close the socket, kill the server and reap it; do nothing in a forked child of the owner."""
    if os.getpid() != owner:
        return
    control.close()
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
