"""Runs in the child process: creates one object and answers the calls of its host.

The program is started as ``python program.py <request fd> <reply fd> <host's process>`` by Python
3.9 or newer. Standard output is written to the log, because libraries print; messages use separate
file descriptors.

The object has the methods of `Target`.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
import types
from typing import Any, Protocol

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
IDLE_STATUS = 75
"""Exit status of a child that received no call for too long."""


class Target(Protocol):
    """Defines the object that a child runs. The class is created without arguments."""

    def start(self, options: Any) -> Any:
        """Load the packages and return facts, JSON-like."""
        ...

    def answer(self, calls: list[Any], arrays: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Execute the calls of a request in order: return their results, JSON-like, and arrays."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


def main() -> int:
    """Serve one host until it closes its end of the pipe."""
    sys.path.pop(0)  # the folder of this file has modules that hide others
    requests, replies = int(sys.argv[1]), int(sys.argv[2])
    die_with_parent(int(sys.argv[3]))
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches children; the host decides
    hello = read_line(requests)
    sys.path[:] = hello["path"] or sys.path
    for name, folder in hello["packages"]:
        add_bare_package(name, folder)
    link = HostPipes(requests, replies, hello["idle_s"])
    limits = KernelLimits(hello["data_bytes"], hello["processor_s"])
    try:
        limits.limit_data()
        limits.limit_processor_time()
        module, _, name = hello["target"].partition(":")
        target = getattr(importlib.import_module(module), name)()
        facts = target.start(hello["options"])
    except BaseException as error:  # noqa: BLE001  the host raises the error
        link.send({"id": 0, "error": report(error)}, {})
        return 1
    link.send({"id": 0, "results": [facts]}, {})
    return serve(link, target, limits)


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent dies, even during a call that hangs."""
    try:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    except (OSError, AttributeError):  # other systems: the closed pipe ends the child
        return
    if os.getppid() != parent:
        os._exit(1)


class KernelLimits:
    """Holds the limits that the kernel enforces on this process.

    Args:
        data_bytes: Maximum number of bytes of writable private memory; an allocation beyond it
            fails. None sets no limit.
        processor_s: Maximum number of seconds of processor time of one call, of all threads
            together; beyond it, the kernel ends the process with SIGXCPU. None sets no limit.
    """

    def __init__(self, data_bytes: int | None, processor_s: float | None) -> None:
        self.data_bytes, self.processor_s = data_bytes, processor_s

    def limit_data(self) -> None:
        """Set the limit of memory. A child with this limit leaves no core file if it crashes."""
        if self.data_bytes is None:
            return
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = self.data_bytes if hard == resource.RLIM_INFINITY else min(self.data_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        try:  # if the machine runs out of memory, this process ends before its host
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write("1000")
        except OSError:  # other systems
            pass

    def limit_processor_time(self) -> None:
        """Grant the processor time of one more call."""
        if self.processor_s is None:
            return
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        wanted = int(time.process_time() + self.processor_s) + 1  # the unit is whole seconds
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def add_bare_package(name: str, folder: str) -> None:
    """Make a package importable without running its ``__init__``, which may import missing ones."""
    package = types.ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package


def read_line(descriptor: int) -> dict[str, Any]:
    """Return the JSON object of the first line that the host sends."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(descriptor, 1)
    found: dict[str, Any] = json.loads(line)
    return found


def report(error: BaseException) -> dict[str, str]:
    """Return an exception in the form of a message to the host."""
    kinds = {cls.__name__ for cls in type(error).__mro__}
    is_setup = not kinds.isdisjoint({"ImportError", "SetupError", "OpenGLError"})
    return {
        "kind": "setup" if is_setup else "error",
        "module": str(getattr(error, "name", None) or ""),
        "message": f"{type(error).__name__}: {error}"[:2000],
        "traceback": traceback.format_exc()[-4000:],
    }


class HostPipes:
    """Holds the two pipes to the host."""

    def __init__(self, requests: int, replies: int, idle_s: float) -> None:
        self.requests, self.replies, self.idle_s = requests, replies, idle_s

    def receive(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Wait for a request.

        Raises:
            EOFError: If the host closed the pipe.
            TimeoutError: If no request came for `idle_s` seconds.
        """
        from visenv.child_process import wire

        if not select.select([self.requests], [], [], self.idle_s)[0]:
            raise TimeoutError
        text, arrays = wire.read_header(self._read(wire.HEADER.size))
        return wire.unpack(self._read(text), self._read(arrays))

    def send(self, message: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Send a reply to the host."""
        from visenv.child_process import wire

        for piece in wire.pack(message, arrays):
            rest = memoryview(piece)
            while rest.nbytes:
                rest = rest[os.write(self.replies, rest) :]

    def _read(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            piece = os.read(self.requests, size - len(found))
            if not piece:
                raise EOFError
            found += piece
        return bytes(found)


def serve(link: HostPipes, target: Target, limits: KernelLimits) -> int:
    """Answer requests; return the exit status."""
    try:
        while True:
            request, arrays = link.receive()
            limits.limit_processor_time()
            try:
                results, out = target.answer(request["calls"], arrays)
                link.send({"id": request["id"], "results": results}, out)
            except Exception as error:  # noqa: BLE001  the host raises the error
                link.send({"id": request["id"], "error": report(error)}, {})
    except (EOFError, BrokenPipeError):
        target.close()
        return 0
    except TimeoutError:
        target.close()
        return IDLE_STATUS


if __name__ == "__main__":
    sys.exit(main())
