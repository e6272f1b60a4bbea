"""Defines the host that runs a simulator in a child process with another interpreter."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.errors import ConfigurationError, ServiceError
from visenv.simulators import child, wire
from visenv.simulators.host import Call, SimulatorHost, start_error
from visenv.simulators.settings import SimulatorSpec

_PIPE_BYTES = 2**20
_LOG_BYTES = 4096
_POLL_S = 0.5
"""Seconds between two checks of the memory of a child during a call."""

_KILL_S = 5.0
"""Seconds that the kernel may take to end a killed child."""

_CLOSE_S = 10.0
"""Seconds that a child has to close its simulator before it is killed."""

# The kernel ends a child when the thread that started it ends. Therefore one thread, which lives as
# long as this process, starts all children.
_starter = ThreadPoolExecutor(1, thread_name_prefix="visenv-starter")


def _after_fork_in_child() -> None:
    global _starter  # noqa: PLW0603  a fork copies the executor, and not its thread
    _starter = ThreadPoolExecutor(1, thread_name_prefix="visenv-starter")


os.register_at_fork(after_in_child=_after_fork_in_child)


class ChildHost(SimulatorHost):
    """Runs a simulator in a child process.

    Messages consist of JSON and raw bytes, and use separate file descriptors. The output of the
    simulator is kept for error messages. The child ends with this process, even if this process is
    killed. The temporary folder of the child is deleted when the child ends.

    Args:
        spec: The simulator; `SimulatorSpec.interpreter` is the path of a program.
    """

    def __init__(self, spec: SimulatorSpec) -> None:
        super().__init__(spec)
        self._process: subprocess.Popen[bytes] | None = None
        self._requests = self._replies = self._output = -1
        self._log = b""
        self._number = 0
        self._scratch = ""

    @property
    def pid(self) -> int:
        """Return the process id of the child, 0 before it is started."""
        return 0 if self._process is None else self._process.pid

    @override
    def start(self) -> None:
        """Start the child and wait until its simulator has loaded its packages."""
        module = self.spec.target.partition(":")[0]
        hello = {
            "target": self.spec.target,
            "options": json.loads(self.spec.options),
            "packages": bare_packages(module),
            "idle_s": self.spec.limits.idle_s,
        }
        self._spawn()
        deadline = time.monotonic() + self.spec.limits.start_s
        self._write(json.dumps(hello).encode() + b"\n", deadline)
        message, _ = self._read_reply(deadline)
        if "error" in message:
            self._end()
            raise start_error(self.spec, message["error"])
        self.facts = message["results"][0]

    def _spawn(self) -> None:
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._output, output = os.pipe()
        for descriptor in (self._requests, self._replies):
            with contextlib.suppress(OSError):  # the user's limit on pipe memory may be reached
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        for descriptor in (self._requests, self._replies, self._output):
            os.set_blocking(descriptor, False)
        command = [self.spec.interpreter, child.__file__, str(requests), str(replies)]
        try:
            self._scratch = tempfile.mkdtemp(prefix="visenv-simulator-")
            self._process = _starter.submit(
                subprocess.Popen,
                [*command, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(requests, replies),
                start_new_session=True,
                env=child_environment(self.spec.interpreter) | {"TMPDIR": self._scratch},
            ).result()
        except OSError as error:
            self._close_pipes()
            shutil.rmtree(self._scratch, ignore_errors=True)
            self.broken = True
            raise ConfigurationError(
                f"The interpreter {self.spec.interpreter!r} cannot be started: {error}."
            ) from error
        finally:
            for descriptor in (requests, replies, output):
                os.close(descriptor)

    @override
    def close(self) -> None:
        """Let the child close its simulator; kill it if that takes too long."""
        process = self._process
        if process is not None and not self.broken:
            os.close(self._requests)
            self._requests = -1
            deadline = time.monotonic() + _CLOSE_S
            while not self._has_ended() and time.monotonic() < deadline:
                self._drain()
                time.sleep(0.005)
        self._end()

    @override
    def kill(self) -> bool:
        """Kill the child and its children; a waiting call raises `ServiceError`.

        The children of a child that has already ended are killed, too.
        """
        # The process id cannot be reused before the child has been reaped.
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_S)
        return True

    @override
    def memory_bytes(self) -> int:
        """Return the resident memory of the child."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @override
    def is_alive(self) -> bool:
        """Return whether the child runs and has not failed."""
        return self._process is not None and not self.broken and not self._has_ended()

    @override
    def fail(self, reason: str) -> ServiceError:
        """Kill the child and return the error, with the last lines of the child's output."""
        self._drain()
        self._end()
        lines = self._log.decode(errors="replace").strip().splitlines()[-3:]
        said = f" It printed last: {' / '.join(lines)}" if lines else ""
        return super().fail(reason + said)

    # ------------------------------------------------------------------ messages

    @override
    def _exchange(
        self, calls: Sequence[Call], arrays: Mapping[str, Any]
    ) -> tuple[list[Any], Mapping[str, Any]]:
        self._number += 1
        deadline = time.monotonic() + self.spec.limits.call_s
        if self._replies in select.select([self._replies], [], [], 0)[0]:
            raise self._unexpected()
        request = {"id": self._number, "calls": [list(call) for call in calls]}
        for piece in wire.pack(request, arrays):
            self._write(piece, deadline)
        message, found = self._read_reply(deadline)
        if "error" in message:
            raise self.fail(message["error"]["message"])
        return message["results"], found

    def _unexpected(self) -> ServiceError:
        """Return the error for a child that sent a message, or ended, without a request."""
        try:
            more = os.read(self._replies, 1)
        except OSError:
            more = b""
        return self.fail("it replied twice.") if more else self._ended()

    def _read_reply(self, deadline: float) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            text, size = wire.read_header(self._read(wire.HEADER.size, deadline))
            message, arrays = wire.unpack(
                bytes(self._read(text, deadline)), self._read(size, deadline)
            )
        except wire.WireError as error:
            raise self.fail(f"its reply is invalid: {error}.") from error
        if message.get("id") != self._number:
            raise self.fail(
                f"it replied to call {message.get('id')} instead of call {self._number}."
            )
        is_error = isinstance(message.get("error"), dict) and "message" in message["error"]
        if not is_error and not (isinstance(message.get("results"), list) and message["results"]):
            raise self.fail("its reply has neither results nor an error.")
        return message, arrays

    def _write(self, piece: bytes, deadline: float) -> None:
        rest = memoryview(piece)
        while rest.nbytes:
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                self._wait([], [self._requests], deadline)
            except OSError:
                raise self._ended() from None

    def _read(self, size: int, deadline: float) -> bytearray:
        found = bytearray(size)
        rest = memoryview(found)
        while rest.nbytes:
            try:
                count = os.readv(self._replies, [rest])
            except BlockingIOError:
                self._wait([self._replies], [], deadline)
                continue
            except OSError:
                count = 0
            if not count:
                raise self._ended()
            rest = rest[count:]
        return found

    def _wait(self, readers: list[int], writers: list[int], deadline: float) -> None:
        """Wait until a pipe is ready; meanwhile, read the child's output and check its memory."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self.fail("no reply in time (limits: HostLimits.start_s and call_s).")
            ready = select.select([*readers, self._output], writers, [], min(left, _POLL_S))
            if self._output in ready[0] and not self._drain():
                # The child has closed its output: wait only for the reply pipe.
                ready = select.select(readers, writers, [], min(left, _POLL_S))
            if ready[1] or any(each in readers for each in ready[0]):
                return
            used, most = self.memory_bytes(), self.spec.limits.memory_bytes
            if used > most:
                raise self.fail(f"it used {used / 2**20:.0f} MiB, more than {most / 2**20:.0f}.")

    def _drain(self) -> bool:
        """Read the child's output; return False at its end."""
        while True:
            try:
                said = os.read(self._output, 65536)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not said:
                return False
            self._log = (self._log + said)[-_LOG_BYTES:]

    def _has_ended(self) -> bool:
        """Return whether the child has ended, without reaping it, see `kill`."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None

    def _ended(self) -> ServiceError:
        process = self._process
        code: Any = None
        if process is not None:
            deadline = time.monotonic() + 2
            while not self._has_ended() and time.monotonic() < deadline:
                time.sleep(0.005)
            if self._has_ended():
                self.kill()
                code = process.returncode
        idle = " after it was idle for too long" if code == child.IDLE_STATUS else ""
        return self.fail(f"its process ended with status {code}{idle}.")

    def _end(self) -> None:
        self.broken = True
        self.kill()
        if self._process is not None:
            self._process.wait()
        self._close_pipes()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _close_pipes(self) -> None:
        for name in ("_requests", "_replies", "_output"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                os.close(descriptor)
                setattr(self, name, -1)


def bare_packages(module: str) -> list[tuple[str, str]]:
    """Return a module's parent packages with their folders, outermost first, and the core's."""
    found: dict[str, str] = {}
    for name in ("visenv.simulators.wire", module):
        parts = name.split(".")[:-1]
        for depth in range(1, len(parts) + 1):
            package = ".".join(parts[:depth])
            spec = importlib.util.find_spec(package)
            if spec is None or not spec.submodule_search_locations:
                raise ConfigurationError(f"There is no package {package!r}.")
            found[package] = next(iter(spec.submodule_search_locations))
    return list(found.items())


def child_environment(interpreter: str) -> dict[str, str]:
    """Return the environment variables of a child; another Python gets none of this Python's."""
    own = Path(interpreter).resolve() == Path(sys.executable).resolve()
    same = own and Path(interpreter).parent == Path(sys.executable).parent
    left_out = () if same else ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in left_out}
