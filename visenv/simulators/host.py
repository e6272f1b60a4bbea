"""Defines the interface of hosts, and hosts that run a simulator in this process or in a child."""

from __future__ import annotations

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.child_process.host import ChildError, ChildProcess
from visenv.child_process.program import report
from visenv.errors import ConfigurationError, ServiceError
from visenv.simulators.child import answer
from visenv.simulators.settings import SimulatorSpec

BOUNDARY = "simulator"
"""Value of `boundary` in every `ServiceError` of a host."""

Frames = Mapping[str, NDArray[np.uint8]]

Call = tuple[str, Any]


class SimulatorReply(NamedTuple):
    """Holds the result of a call.

    Attributes:
        facts: The return value of the simulator, as JSON.
        frames: The requested frames, uint8 ``[height, width, 3]``, by name.
        snapshot: The state after the call if it was requested, otherwise ``b""``.
    """

    facts: dict[str, Any]
    frames: Frames
    snapshot: bytes


class SimulatorHost(ABC):
    """Runs one simulator. One thread uses a host at a time.

    `kill` may be called from another thread.

    Attributes:
        facts: The return value of `Simulator.start`.
        broken: Whether the simulator failed; after a failure, only `close` may be called.
        resets: Number of episodes that were started.
        task: Task of the current episode as JSON, by which a pool finds a suitable host.
    """

    def __init__(self, spec: SimulatorSpec) -> None:
        self.spec = spec
        self.facts: dict[str, Any] = {}
        self.broken = False
        self.resets = 0
        self.task = ""

    @abstractmethod
    def start(self) -> None:
        """Start the simulator.

        Raises:
            ConfigurationError: If something must be installed first; the message names it.
            ServiceError: If the simulator fails.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the simulator and release its process or thread."""

    @abstractmethod
    def kill(self) -> bool:
        """Stop a call that hangs; return whether this is possible."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Return the resident memory of the simulator's own process in bytes, 0 if it has none."""

    @abstractmethod
    def is_alive(self) -> bool:
        """Return whether the simulator can be called."""

    def is_reusable(self) -> bool:
        """Return whether another episode may be played: it works and its memory is in the limit."""
        return self.is_alive() and self.memory_bytes() <= self.spec.limits.recycle_bytes

    @abstractmethod
    def _exchange(
        self, calls: Sequence[Call], arrays: Mapping[str, Any]
    ) -> tuple[list[Any], Mapping[str, Any]]:
        """Execute calls in order; return their results, and frames and snapshot by name."""

    def reset(self, task: Mapping[str, Any], *, frames: Any = None) -> SimulatorReply:
        """Start an episode, and render if `frames` is a request for frames.

        Raises:
            ServiceError: If the simulator fails.
        """
        self.resets += 1
        self.task = json.dumps(dict(task), sort_keys=True)
        return self._call("reset", dict(task), frames=frames)

    def act(
        self, request: Mapping[str, Any], *, frames: Any = None, snapshot: bool = False
    ) -> SimulatorReply:
        """Execute an action, then render and save the state if requested.

        Raises:
            ServiceError: If the simulator fails.
        """
        return self._call("act", dict(request), frames=frames, snapshot=snapshot)

    def frames(self, request: Mapping[str, Any]) -> Frames:
        """Return frames of the current state.

        Raises:
            ServiceError: If the simulator fails.
        """
        return self._reply([("frames", dict(request))], {}).frames

    def snapshot(self) -> bytes:
        """Return the state.

        Raises:
            ServiceError: If the simulator fails.
        """
        return self._reply([("snapshot", None)], {}).snapshot

    def restore(self, snapshot: bytes, *, frames: Any = None) -> SimulatorReply:
        """Restore a state of the same task.

        Raises:
            ServiceError: If the simulator fails.
        """
        arrays = {"snapshot": np.frombuffer(snapshot, np.uint8)}
        return self._call("restore", None, frames=frames, arrays=arrays)

    def _call(
        self,
        name: str,
        request: Any,
        *,
        frames: Any = None,
        snapshot: bool = False,
        arrays: Mapping[str, Any] | None = None,
    ) -> SimulatorReply:
        calls: list[Call] = [(name, request)]
        if frames is not None:
            calls.append(("frames", frames))
        if snapshot:
            calls.append(("snapshot", None))
        return self._reply(calls, arrays or {})

    def _reply(self, calls: Sequence[Call], arrays: Mapping[str, Any]) -> SimulatorReply:
        if self.broken:
            raise ServiceError(BOUNDARY, "it failed before and was not started again.")
        results, found = self._exchange(calls, arrays)
        facts, ok = results[0], len(results) == len(calls)
        if not ok or not (facts is None or isinstance(facts, dict)):
            raise self.fail(f"the reply to {calls[0][0]!r} has another form than the call.")
        frames = {
            name.removeprefix("frame "): _frame(self, name, array)
            for name, array in found.items()
            if name.startswith("frame ")
        }
        saved = found.get("snapshot")
        return SimulatorReply(facts or {}, frames, b"" if saved is None else saved.tobytes())

    def fail(self, reason: str) -> ServiceError:
        """Mark the host as broken and return the error to raise."""
        self.broken = True
        return ServiceError(BOUNDARY, reason)


def _frame(host: SimulatorHost, name: str, array: Any) -> NDArray[np.uint8]:
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise host.fail(f"{name!r} must be uint8 [height, width, 3], got {array.shape}.")
    found: NDArray[np.uint8] = array
    return found


class LocalSimulatorHost(SimulatorHost):
    """Runs a simulator in a thread of this process, because EGL contexts are bound to a thread.

    A call that hangs cannot be stopped. After its timeout the thread is abandoned, and the host is
    broken.
    """

    def __init__(self, spec: SimulatorSpec) -> None:
        super().__init__(spec)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="visenv-simulator")
        self._simulator: Any = None

    @override
    def start(self) -> None:
        """Import the class, and start the simulator."""
        try:
            self.facts = self._wait(self._start, self.spec.limits.start_s)
        except Exception as error:
            if self.broken:
                raise
            self.broken = True
            raise start_error(self.spec, report(error)) from error

    def _start(self) -> dict[str, Any]:
        module, _, name = self.spec.target.partition(":")
        self._simulator = getattr(importlib.import_module(module), name)()
        facts: dict[str, Any] = self._simulator.start(json.loads(self.spec.options))
        return facts

    @override
    def close(self) -> None:
        """Close the simulator, unless one of its calls hangs."""
        if self._simulator is not None and not self.broken:
            self._thread.submit(self._simulator.close)
        self.broken = True
        self._thread.shutdown(wait=False)

    @override
    def kill(self) -> bool:
        """Return False, because a thread cannot be stopped from outside."""
        return False

    @override
    def memory_bytes(self) -> int:
        """Return 0, because the memory belongs to this process."""
        return 0

    @override
    def is_alive(self) -> bool:
        """Return whether the simulator was started and has not failed."""
        return self._simulator is not None and not self.broken

    @override
    def _exchange(
        self, calls: Sequence[Call], arrays: Mapping[str, Any]
    ) -> tuple[list[Any], Mapping[str, Any]]:
        def work() -> tuple[list[Any], Mapping[str, Any]]:
            return answer(self._simulator, list(calls), dict(arrays))

        try:
            found: tuple[list[Any], Mapping[str, Any]] = self._wait(work, self.spec.limits.call_s)
        except ServiceError:
            raise
        except Exception as error:
            raise self.fail(report(error)["message"]) from error
        return found

    def _wait(self, work: Any, seconds: float) -> Any:
        try:
            return self._thread.submit(work).result(seconds)
        except TimeoutError:
            raise self.fail(f"no reply within {seconds:g} s.") from None


def start_error(spec: SimulatorSpec, found: Mapping[str, str]) -> Exception:
    """Return the error for a simulator that did not start."""
    if found["kind"] != "setup":
        return ServiceError(BOUNDARY, f"it did not start: {found['message']}")
    where = spec.interpreter or "this interpreter"
    if found["module"]:
        return ConfigurationError(
            f"{where} lacks the package {found['module']!r}, which {spec.target} needs. Run "
            f"{spec.install}"
        )
    return ConfigurationError(f"{spec.target} cannot start with {where}. {found['message']}")


class ChildHost(SimulatorHost):
    """Runs a simulator in a child process (`visenv.child_process.host.ChildProcess`).

    Args:
        spec: The simulator; `SimulatorSpec.interpreter` is the path of a program.
    """

    def __init__(self, spec: SimulatorSpec) -> None:
        super().__init__(spec)
        self.child = ChildProcess(
            "visenv.simulators.child:SimulatorTarget",
            {"simulator": spec.target, "options": json.loads(spec.options)},
            spec.interpreter,
            spec.limits,
            modules=(spec.target.partition(":")[0],),
        )

    @property
    def pid(self) -> int:
        """Return the process id of the child, 0 before it is started."""
        return self.child.pid

    @override
    def start(self) -> None:
        """Start the child and wait until its simulator has loaded its packages."""
        try:
            self.facts = self.child.start()
        except ChildError as error:
            failure = super().fail(str(error))
            raise (start_error(self.spec, error.report) if error.report else failure) from error

    @override
    def close(self) -> None:
        """Let the child close its simulator; kill it if that takes too long."""
        self.broken = True
        self.child.close()

    @override
    def kill(self) -> bool:
        """Kill the child and its children; a waiting call raises `ServiceError`."""
        self.child.kill()
        return True

    @override
    def memory_bytes(self) -> int:
        """Return the resident memory of the child."""
        return self.child.memory_bytes()

    @override
    def is_alive(self) -> bool:
        """Return whether the child runs and has not failed."""
        return not self.broken and self.child.is_alive()

    @override
    def fail(self, reason: str) -> ServiceError:
        """Kill the child and return the error, with the last lines of the child's output."""
        return super().fail(str(self.child.fail(reason)))

    @override
    def _exchange(
        self, calls: Sequence[Call], arrays: Mapping[str, Any]
    ) -> tuple[list[Any], Mapping[str, Any]]:
        try:
            return self.child.call(calls, arrays)
        except ChildError as error:
            raise super().fail(str(error)) from error
