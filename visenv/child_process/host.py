"""Defines the host's side of a child process: starts it, calls it within limits, ends it."""

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
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from visenv.child_process import program, wire
from visenv.errors import ConfigurationError

_PIPE_BYTES = 2**20
_LOG_BYTES = 4096
_POLL_S = 0.5
"""Seconds between two checks of the memory of a child during a call."""

_KILL_S = 5.0
"""Seconds that the kernel may take to end a killed child."""

_CLOSE_S = 10.0
"""Seconds that a child has to close its object before it is killed."""

# The kernel ends a child when the thread that started it ends. Therefore one thread, which lives as
# long as this process, starts all children.
_starter = ThreadPoolExecutor(1, thread_name_prefix="visenv-starter")


def _after_fork_in_child() -> None:
    global _starter  # noqa: PLW0603  a fork copies the executor, and not its thread
    _starter = ThreadPoolExecutor(1, thread_name_prefix="visenv-starter")


os.register_at_fork(after_in_child=_after_fork_in_child)


@dataclass(frozen=True, kw_only=True)
class ChildLimits:
    """Sets the limits of a child process.

    Attributes:
        start_s: Maximum number of seconds to start, with the imports of packages.
        call_s: Maximum number of seconds of one call.
        idle_s: Seconds without a call after which a child ends.
        memory_bytes: Resident memory above which a child is killed.
        data_bytes: Writable memory that the kernel grants (`RLIMIT_DATA`); None sets no limit.
        processor_s: Maximum number of seconds of processor time of one call; None sets no limit.
    """

    start_s: float = 180.0
    call_s: float = 120.0
    idle_s: float = 3600.0
    memory_bytes: int = 8 * 2**30
    data_bytes: int | None = None
    processor_s: float | None = None


class ChildError(Exception):
    """Raised if a child cannot answer. The child has then ended, or is ended.

    Args:
        reason: The cause, in words for a person.
        report: The exception of the child (`program.report`), if it raised one.
        status: The exit status, negative for a signal, if the child ended by itself.
    """

    def __init__(
        self, reason: str, report: Mapping[str, str] | None = None, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.report = report
        self.status = status


class ChildTimeoutError(ChildError):
    """Raised if a child did not reply in time, or used too much processor time."""


class ChildProcess:
    """Runs an object of a class with the methods of `program.Target` in a child process.

    Messages consist of JSON and raw bytes, and use separate file descriptors. The output of the
    child is kept for error messages. The child ends with this process, even if this process is
    killed. Its temporary folder is deleted when the child ends. One thread uses a child at a time;
    `kill` may be called from another thread.

    Args:
        target: The class, ``"module:Class"``.
        options: The options of `Target.start`, JSON-like.
        interpreter: The path of the Python that runs it.
        limits: The limits.
        modules: Further modules that the child imports from packages whose ``__init__`` it must not
            run.
        is_light: Whether the child starts faster: with the import path of this process instead of
            reading it again, and without a temporary folder.
        environment: Further environment variables of the child.
    """

    def __init__(
        self,
        target: str,
        options: Any,
        interpreter: str = sys.executable,
        limits: ChildLimits | None = None,
        modules: Sequence[str] = (),
        is_light: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.limits = ChildLimits() if limits is None else limits
        self.broken = False
        self._target = target
        self._options = options
        self._interpreter = interpreter
        self._modules = (target.partition(":")[0], *modules)
        self._process: subprocess.Popen[bytes] | None = None
        self._killing = threading.Lock()
        self._requests = self._replies = self._output = -1
        self._log = b""
        self._number = 0
        self._limit = ("", 0.0)
        self._is_light = is_light
        self._environment = dict(environment or {})
        self._scratch = ""

    @property
    def pid(self) -> int:
        """Return the process id of the child, 0 before it is started."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> Any:
        """Start the child, wait until its object has loaded its packages, and return its facts.

        Raises:
            ConfigurationError: If the interpreter cannot be started, or a package does not exist.
            ChildError: If the object raises an exception, or does not start in time.
        """
        hello = {
            "target": self._target,
            "options": self._options,
            "path": [place for place in sys.path if place] if self._is_light else [],
            "packages": bare_packages(*self._modules),
            "idle_s": self.limits.idle_s,
            "data_bytes": self.limits.data_bytes,
            "processor_s": self.limits.processor_s,
        }
        self._spawn()
        self._limit = ("start_s", self.limits.start_s)
        deadline = time.monotonic() + self.limits.start_s
        self._write(json.dumps(hello).encode() + b"\n", deadline)
        message, _ = self._read_reply(deadline)
        if "error" in message:
            self.end()
            raise ChildError(message["error"]["message"], message["error"])
        return message["results"][0]

    def call(
        self, calls: Sequence[Sequence[Any]], arrays: Mapping[str, Any]
    ) -> tuple[list[Any], Mapping[str, Any]]:
        """Let the object answer calls; see `program.Target.answer`.

        Raises:
            ChildError: If the child raises an exception, ends, exceeds a limit, or replies in
                another form.
        """
        if self.broken:
            raise ChildError("it failed before and was not started again.")
        self._number += 1
        self._limit = ("call_s", self.limits.call_s)
        deadline = time.monotonic() + self.limits.call_s
        if self._replies in select.select([self._replies], [], [], 0)[0]:
            raise self._unexpected()
        request = {"id": self._number, "calls": [list(call) for call in calls]}
        for piece in wire.pack(request, arrays):
            self._write(piece, deadline)
        message, found = self._read_reply(deadline)
        if "error" in message:
            raise self.fail(message["error"]["message"], message["error"])
        return message["results"], found

    def close(self) -> None:
        """Let the child close its object; kill it if that takes too long."""
        process = self._process
        if process is not None and not self.broken:
            os.close(self._requests)
            self._requests = -1
            deadline = time.monotonic() + _CLOSE_S
            while not self._has_ended() and time.monotonic() < deadline:
                self._drain()
                time.sleep(0.005)
        self.end()

    def kill(self) -> None:
        """Kill the child and its children; a waiting call raises `ChildError`.

        The children of a child that has already ended are killed, too.
        """
        # The process id cannot be reused before the child has been reaped.
        with self._killing:
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_KILL_S)

    def end(self) -> None:
        """Kill the child, and release its pipes and its temporary folder."""
        self.broken = True
        self.kill()
        if self._process is not None:
            self._process.wait()
        self._close_pipes()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def disown(self) -> None:
        """Close the pipes in a forked process, to which the child does not belong."""
        self.broken = True
        self._close_pipes()
        if self._process is not None and self._process.returncode is None:
            self._process.returncode = 0  # the object must not wait for a process of the parent

    def memory_bytes(self) -> int:
        """Return the resident memory of the child."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def is_alive(self) -> bool:
        """Return whether the child runs and has not failed."""
        return self._process is not None and not self.broken and not self._has_ended()

    def fail(
        self, reason: str, report: Mapping[str, str] | None = None, status: int | None = None
    ) -> ChildError:
        """Kill the child and return the error, with the last lines of the child's output."""
        self._drain()
        self.end()
        lines = self._log.decode(errors="replace").strip().splitlines()[-3:]
        printed = f" It printed last: {' / '.join(lines)}" if lines else ""
        return ChildError(reason + printed, report, status)

    # ------------------------------------------------------------------ messages

    def _spawn(self) -> None:
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._output, output = os.pipe()
        for descriptor in (self._requests, self._replies):
            with contextlib.suppress(OSError):  # the user's limit on pipe memory may be reached
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        for descriptor in (self._requests, self._replies, self._output):
            os.set_blocking(descriptor, False)
        flags = ["-S"] if self._is_light else []
        command = [self._interpreter, *flags, program.__file__, str(requests), str(replies)]
        try:
            environment = child_environment(self._interpreter) | self._environment
            if not self._is_light:
                self._scratch = tempfile.mkdtemp(prefix="visenv-child-")
                environment["TMPDIR"] = self._scratch
            self._process = _starter.submit(
                subprocess.Popen,
                [*command, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(requests, replies),
                start_new_session=True,
                env=environment,
            ).result()
        except OSError as error:
            self.end()
            raise ConfigurationError(
                f"The interpreter {self._interpreter!r} cannot be started: {error}."
            ) from error
        finally:
            for descriptor in (requests, replies, output):
                os.close(descriptor)

    def _unexpected(self) -> ChildError:
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

    def _write(self, piece: Any, deadline: float) -> None:
        rest = memoryview(piece)
        while rest.nbytes:
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                self._wait([], [self._requests], deadline)
            except OSError:
                raise self._ended() from None

    def _read(self, size: int, deadline: float) -> memoryview:
        found = np.empty(size, np.uint8).data  # a bytearray would be filled with zeros
        rest = found
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
                name, seconds = self._limit
                failure = self.fail(f"no reply within {seconds:g} s (the limit {name}).")
                raise ChildTimeoutError(str(failure))
            ready = select.select([*readers, self._output], writers, [], min(left, _POLL_S))
            if self._output in ready[0] and not self._drain():
                # The child has closed its output: wait only for the reply pipe.
                ready = select.select(readers, writers, [], min(left, _POLL_S))
            if ready[1] or any(each in readers for each in ready[0]):
                return
            used, most = self.memory_bytes(), self.limits.memory_bytes
            if used > most:
                raise self.fail(f"it used {used / 2**20:.0f} MiB, more than {most / 2**20:.0f}.")

    def _drain(self) -> bool:
        """Read the child's output; return False at its end."""
        while True:
            try:
                printed = os.read(self._output, 65536)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not printed:
                return False
            self._log = (self._log + printed)[-_LOG_BYTES:]

    # ------------------------------------------------------------------ the end

    def _has_ended(self) -> bool:
        """Return whether the child has ended, without reaping it, see `kill`."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, process.pid, flags) is not None
        except ChildProcessError:  # another thread has just reaped it in `kill`
            process.wait()
            return True

    def _ended(self) -> ChildError:
        process = self._process
        code: int | None = None
        if process is not None:
            deadline = time.monotonic() + 2
            while not self._has_ended() and time.monotonic() < deadline:
                time.sleep(0.005)
            if self._has_ended():
                self.kill()
                code = process.returncode
        idle = " after it was idle for too long" if code == program.IDLE_STATUS else ""
        failure = self.fail(f"its process ended with status {code}{idle}.", status=code)
        if code == -signal.SIGXCPU:
            return ChildTimeoutError(str(failure), status=code)
        return failure

    def _close_pipes(self) -> None:
        for name in ("_requests", "_replies", "_output"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                os.close(descriptor)
                setattr(self, name, -1)


def bare_packages(*modules: str) -> list[tuple[str, str]]:
    """Return the parent packages of modules with their folders, outermost first, and the core's.

    Raises:
        ConfigurationError: If there is no such package.
    """
    found: dict[str, str] = {}
    for name in ("visenv.child_process.wire", *modules):
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
