"""Runs programs in processes of this machine; this is the default backend."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal, get_args

import numpy as np
from typing_extensions import override

from visenv.decoding.pictures import background_color
from visenv.errors import ConfigurationError, ServiceError, UnknownNameError
from visenv.sandbox import forks, handoff
from visenv.sandbox.backend import Execution, Program, is_variable
from visenv.sandbox.cell import Cell
from visenv.sandbox.fork_server import CellLostError, ForkServer, ServerHello
from visenv.sandbox.guest import probe, wire
from visenv.sandbox.outcome import Cleaner, execution
from visenv.types import Image

Isolation = Literal["auto", "namespaces", "landlock"]

PACKAGES = ("numpy", "cv2", "PIL")
_ATTEMPTS = 3
_PAGE = 4096


class LocalBackend:
    """Runs each program in a new fork of a server process that never runs programs itself.

    docs/sandbox.md describes the layers. The server starts with the first program. If it dies, it
    is replaced, and the programs that were lost are run again.

    Args:
        isolation: ``"auto"`` uses the strongest isolation of the machine: private namespaces,
            otherwise Landlock. Any other value requires that isolation.
        packages: Modules that programs can import besides the standard library; the server loads
            them once. Modules that one of them loads later must be listed, too.
        ahead: Processes kept ready for the next programs; by default the number of CPUs.
        unsafe: Run programs even if layers of the isolation are missing. Never use this for code of
            a model on a machine with valuable data.

    Raises:
        ConfigurationError: If an option has an invalid value.
    """

    def __init__(
        self,
        *,
        isolation: Isolation = "auto",
        packages: Sequence[str] = PACKAGES,
        ahead: int | None = None,
        unsafe: bool = False,
    ) -> None:
        if isolation not in get_args(Isolation):
            raise UnknownNameError("isolation", isolation, get_args(Isolation))
        if ahead is not None and ahead < 0:
            raise ConfigurationError(f"ahead must be at least 0, got {ahead}.")
        self._options: dict[str, Any] = {
            "isolation": isolation,
            "packages": tuple(packages),
            "ahead": ahead,
            "unsafe": unsafe,
        }
        self._ahead = len(os.sched_getaffinity(0)) if ahead is None else ahead
        self.after_fork()
        forks.watch(self)

    def after_fork(self) -> None:
        """Reset to a state without a server; a forked child starts its own."""
        server: ForkServer | None = getattr(self, "_server", None)
        if server is not None:
            server.abandon()
        self._server: ForkServer | None = None
        self._retired: list[ForkServer] = []
        self._closed = 0  # number of calls of `close`
        self._lock = threading.Lock()

    @override
    def __getstate__(self) -> dict[str, Any]:
        return self._options

    def __setstate__(self, options: dict[str, Any]) -> None:
        self.__init__(**options)  # type: ignore[misc]

    def start(self) -> None:
        """Start the server.

        Raises:
            ConfigurationError: If the machine lacks required layers, or a package is missing.
            ServiceError: If the server cannot be started.
        """
        self._running()

    def hello(self) -> ServerHello:
        """Return the report of the server: the isolation of programs, and every layer.

        Raises:
            ConfigurationError, ServiceError: As `start`.
        """
        return self._running().hello

    def server_pid(self) -> int:
        """Return the process id of the server.

        Raises:
            ConfigurationError, ServiceError: As `start`.
        """
        return self._running().pid

    def run(self, program: Program) -> Execution:
        """Run a program. This method can be called from any thread.

        Raises:
            ConfigurationError: If the machine lacks required layers, or a package is missing.
            ServiceError: If no process is available beyond retries, or the backend was closed.
            ImageError: If a passed image cannot be decoded.
        """
        refused = program.refusal()
        if refused:
            return Execution("refused", error=refused)
        closed = self._closed
        lost = ""
        for _ in range(_ATTEMPTS):
            server = self._running()
            try:
                return _run(server, program)
            except CellLostError as error:
                lost = str(error)
                self._replace(server)
            if self._closed != closed:
                raise ServiceError("sandbox", "it was closed while the program ran")
        raise ServiceError("sandbox", lost)

    def close(self) -> None:
        """End the server, and kill the programs that run."""
        with self._lock:
            ending = [*self._retired, *([self._server] if self._server else [])]
            self._server, self._retired = None, []
            self._closed += 1
        for server in ending:
            server.close()

    def _running(self) -> ForkServer:
        with self._lock:
            if self._server is None:
                configuration = {**self._options, "only_probe": False}
                server = ForkServer(configuration, self._ahead)
                if server.hello.mode is None:
                    server.close()
                    raise ConfigurationError(refusal(server.hello, self._options["isolation"]))
                self._server = server
            return self._server

    def _replace(self, server: ForkServer) -> None:
        """Use a new server from now on; programs in the old one may finish."""
        with self._lock:
            if self._server is server:
                server.retire()
                self._retired.append(server)
                self._server = None
            ended = [each for each in self._retired if each.ended]
            self._retired = [each for each in self._retired if each not in ended]
        for each in ended:
            each.close()


def _run(server: ForkServer, program: Program) -> Execution:
    with ExitStack() as opened:

        def owned(descriptor: int) -> int:
            opened.callback(os.close, descriptor)
            return descriptor

        limits = program.limits
        code = owned(handoff.sealed(program.code.encode("utf-8", "surrogatepass")))
        memories = (
            owned(handoff.empty(wire.REPORT_BYTES)),
            owned(handoff.empty(3 * limits.image_pixels)),
            owned(handoff.empty(limits.file_bytes)),
        )
        inputs = {name: owned(_input(name, each)) for name, each in program.images.items()}
        message = wire.encode(_request(program, inputs))
        with Cell(server.take()) as cell:
            cell.start(message, (*memories, code, *inputs.values()))
            ending = cell.watch(limits, memories)
        server.refill()
        clean = Cleaner(server.hello.paths, server.hello.scratch)
        return execution(ending, memories, limits, clean)


def _input(name: str, image: Image | handoff.SharedImage | bytes) -> int:
    """Return a memory file of an image: its pixels for a variable, its file for a file name."""
    if isinstance(image, bytes):
        return handoff.sealed(image)
    if not is_variable(name):
        original = image.image if isinstance(image, handoff.SharedImage) else image
        return handoff.sealed(handoff.encoded(original, name))
    if isinstance(image, handoff.SharedImage):
        return image.descriptor()
    return handoff.sealed(np.ascontiguousarray(image.pixels).data)


def _request(program: Program, inputs: dict[str, int]) -> dict[str, Any]:
    described = []
    for name, image in program.images.items():
        if is_variable(name) and not isinstance(image, bytes):
            described.append([name, image.size[1], image.size[0], 3])
        else:
            described.append([name])
    limits = program.limits
    files = (os.fstat(each).st_size for name, each in inputs.items() if not is_variable(name))
    return {
        "inputs": described,
        # Whole pages, as the file system counts them.
        "input_bytes": sum(-(-size // _PAGE) * _PAGE for size in files),
        "output": program.output,
        "limits": {
            "cpu_seconds": limits.cpu_seconds,
            "memory_bytes": limits.memory_bytes,
            "disk_bytes": limits.disk_bytes,
            "files": limits.files + len(inputs) + 1,
            "threads": limits.threads,
            "descriptors": limits.descriptors,
            "image_pixels": limits.image_pixels,
            "file_bytes": limits.file_bytes,
            "background": int.from_bytes(background_color()),
        },
    }


def refusal(hello: ServerHello, isolation: str) -> str:
    """Return the reason why programs cannot be run here."""
    needed = (probe.NAMESPACES, probe.LANDLOCK, probe.SECCOMP, probe.PRIVILEGES)
    missing = (
        f"{name} ({why})" for name, there, why in hello.layers if name in needed and not there
    )
    wanted = "" if isolation == "auto" else f" with isolation={isolation!r}"
    return (
        f"This machine cannot run untrusted code safely{wanted}. Required are a "
        f"{probe.SECCOMP}, {probe.PRIVILEGES}, and either a {probe.NAMESPACES} or "
        f"{probe.LANDLOCK.title()}. Missing: {', '.join(missing)}. Run `visenv doctor` "
        "for details. LocalBackend(unsafe=True) runs programs without the missing layers."
    )
