"""Programs in processes of this machine: the backend that is used when no other is named."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal, get_args

import numpy as np
from typing_extensions import override

from visenv.errors import ConfigurationError, ServiceError, UnknownNameError
from visenv.sandbox import forks, handoff
from visenv.sandbox.cell import Cell
from visenv.sandbox.execution import Execution
from visenv.sandbox.fork_server import CellLostError, ForkServer, ServerHello
from visenv.sandbox.guest import probe, wire
from visenv.sandbox.outcome import Cleaner, execution
from visenv.sandbox.program import Program, is_variable
from visenv.types import Image

Isolation = Literal["auto", "namespaces", "landlock"]

PACKAGES = ("numpy", "cv2", "PIL")
_ATTEMPTS = 3
_PAGE = 4096


class LocalBackend:
    """Runs each program in a fresh fork of a server process that never runs any itself.

    See docs/sandbox.md for the layers. The server starts with the first program; one that dies is
    replaced, and programs that it took along are run again.

    Args:
        isolation: ``"auto"`` takes the strongest the machine grants: private namespaces, else
            Landlock. Naming one refuses all else.
        packages: Modules that programs can import besides the standard library; loaded once, in the
            server. What one of them loads only when it is used must be named too.
        ahead: Processes kept ready for the next programs; the number of CPUs by default.
        unsafe: Run programs even where the layers that make it safe are missing. Never for code
            that a model wrote, on a machine that matters.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
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
        """Begin without a server; a forked child has its own."""
        server: ForkServer | None = getattr(self, "_server", None)
        if server is not None:
            server.abandon()
        self._server: ForkServer | None = None
        self._retired: list[ForkServer] = []
        self._closed = 0  # how often
        self._lock = threading.Lock()

    @override
    def __getstate__(self) -> dict[str, Any]:
        return self._options

    def __setstate__(self, options: dict[str, Any]) -> None:
        self.__init__(**options)  # type: ignore[misc]

    def start(self) -> None:
        """Start the server.

        Raises:
            ConfigurationError: If the machine does not grant enough layers, or a package is
                missing.
            ServiceError: If the server cannot be started.
        """
        self._running()

    def hello(self) -> ServerHello:
        """Return what the server found: how programs are isolated, and every layer.

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
        """Run a program; from any thread.

        Raises:
            ConfigurationError: If the machine does not grant enough layers, or a package is
                missing.
            ServiceError: If no process can be had, beyond retries, or the backend was closed.
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
        """End the server; programs that run are killed."""
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
        """Use another one from now on; programs in the old one may finish."""
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
    """Return a memory file of an image: its pixels for a variable, a file for a file."""
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
        f"This machine does not grant what it takes to run untrusted code{wanted}: a "
        f"{probe.SECCOMP}, {probe.PRIVILEGES}, and either a {probe.NAMESPACES} or "
        f"{probe.LANDLOCK.title()}. Missing: {', '.join(missing)}. `visenv doctor` says more; "
        "LocalBackend(unsafe=True) runs programs all the same."
    )
