"""Lends hosts of simulators to environments; starts them one at a time, within a memory budget.

An environment borrows a host at its first reset. It keeps the host until the environment is closed,
the host fails, or the host uses too much memory for another episode. The pool prefers a host that
was used for the same task, because a simulator keeps loaded data. Hosts that are not borrowed stay
open.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from visenv.errors import ConfigurationError, ServiceError
from visenv.simulators.host import BOUNDARY, ChildHost, LocalSimulatorHost, SimulatorHost
from visenv.simulators.settings import IN_PROCESS, SimulatorSpec, find_interpreter

BUDGET_VARIABLE = "VISENV_SIMULATOR_MEMORY"
"""Environment variable with the memory budget of all simulators of a process, GiB."""

_EXPECTED_BYTES = 2**30
"""Estimated memory of a simulator before one of its kind has run, bytes."""

_WAIT_S = 600.0
"""Maximum number of seconds that `borrow` waits for memory."""


class SimulatorPool:
    """Holds hosts of simulators, which the threads of a process share.

    Args:
        budget_bytes: Memory of all simulators together. The default is three quarters of the
            machine's memory, or the value of ``VISENV_SIMULATOR_MEMORY``.
        wait_s: Maximum number of seconds to wait for memory.

    Raises:
        ConfigurationError: If ``VISENV_SIMULATOR_MEMORY`` is not a number.
    """

    def __init__(self, budget_bytes: int | None = None, wait_s: float = _WAIT_S) -> None:
        self.budget_bytes = _budget() if budget_bytes is None else budget_bytes
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._free: list[SimulatorHost] = []
        self._lent: set[SimulatorHost] = set()
        self._largest: dict[str, int] = {}
        self._pending = 0

    def borrow(self, spec: SimulatorSpec, task: Mapping[str, Any]) -> SimulatorHost:
        """Return a started host that is not in use.

        Args:
            spec: The simulator.
            task: The task of the next episode.

        Raises:
            ConfigurationError: If something must be installed first; the message names it.
            ServiceError: If the simulator does not start, or no memory becomes available.
        """
        spec = resolved(spec)
        wanted = json.dumps(dict(task), sort_keys=True)
        deadline = time.monotonic() + self._wait_s
        while True:
            with self._changed:
                host = self._take(spec, wanted)
                if host is None and not self._has_room(spec):
                    self._make_room(deadline)
                    continue
                if host is None:
                    reserved = self._expected(spec)
                    self._pending += reserved
            if host is None:
                return self._start(spec, reserved)
            if host.is_alive():
                return host
            self.give_back(host)  # its process ended while it was idle

    def give_back(self, host: SimulatorHost) -> None:
        """Take a host back, and close it if it failed or uses too much memory."""
        used, keep = host.memory_bytes(), host.is_reusable()
        with self._changed:
            self._largest[host.spec.target] = max(used, self._largest.get(host.spec.target, 0))
            if host not in self._lent:  # the pool was closed in the meantime
                keep = False
            self._lent.discard(host)
            if keep:
                self._free.append(host)
            self._changed.notify_all()
        if not keep:
            host.close()

    def hosts(self) -> list[SimulatorHost]:
        """Return all running hosts, lent ones first."""
        with self._changed:
            return [*self._lent, *self._free]

    def close(self) -> None:
        """Close the free hosts and kill the lent ones."""
        with self._changed:
            free, self._free = self._free, []
            lent, self._lent = list(self._lent), set()
        for host in lent:
            host.kill()
        for host in free:
            host.close()

    def _take(self, spec: SimulatorSpec, task: str) -> SimulatorHost | None:
        fitting = [host for host in self._free if host.spec == spec]
        if not fitting:
            return None
        host = max(fitting, key=lambda each: _likeness(each.task, task))
        self._free.remove(host)
        self._lent.add(host)
        return host

    def _start(self, spec: SimulatorSpec, reserved: int) -> SimulatorHost:
        """Start a host, and release the bytes that were reserved for it."""
        host: SimulatorHost = (
            LocalSimulatorHost(spec) if spec.interpreter == IN_PROCESS else ChildHost(spec)
        )
        try:
            with self._starting:  # one at a time: each reads its packages from the disk
                host.start()
            with self._changed:
                self._lent.add(host)
        finally:
            with self._changed:
                self._pending -= reserved
                self._changed.notify_all()
        return host

    def _expected(self, spec: SimulatorSpec) -> int:
        if spec.interpreter == IN_PROCESS:
            return 0
        return self._largest.get(spec.target) or _EXPECTED_BYTES

    def _has_room(self, spec: SimulatorSpec) -> bool:
        used = sum(host.memory_bytes() for host in (*self._free, *self._lent)) + self._pending
        alone = not self._free and not self._lent and not self._pending
        return alone or used + self._expected(spec) <= self.budget_bytes

    def _make_room(self, deadline: float) -> None:
        """Close a free host, or wait until a host is returned."""
        if self._free:
            self._free.pop(0).close()
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise ServiceError(
                BOUNDARY,
                f"{len(self._lent)} simulators use the memory budget of "
                f"{self.budget_bytes / 2**30:.1f} GiB, and none became free in "
                f"{self._wait_s:g} s. Run fewer environments, or set {BUDGET_VARIABLE}.",
            )
        self._changed.wait(left)


def resolved(spec: SimulatorSpec) -> SimulatorSpec:
    """Return the spec with the interpreter that runs it.

    Raises:
        ConfigurationError: If the interpreter that the user named does not exist.
    """
    if spec.interpreter == IN_PROCESS:
        return spec
    return replace(spec, interpreter=find_interpreter(spec.interpreter))


def _world(task: str) -> Any:
    """Return the part of a task that determines the loaded data: its key ``"world"``."""
    return json.loads(task).get("world") if task else None


def _likeness(task: str, wanted: str) -> int:
    return 2 * (task == wanted) + (bool(task) and _world(task) == _world(wanted))


def _budget() -> int:
    given = os.environ.get(BUDGET_VARIABLE, "")
    if given:
        try:
            return int(float(given) * 2**30)
        except (ValueError, OverflowError) as error:
            raise ConfigurationError(
                f"{BUDGET_VARIABLE} must be a number of GiB such as 16, got {given!r}."
            ) from error
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 0.75)


_pool: SimulatorPool | None = None
_pool_lock = threading.Lock()
_pool_process = 0


def shared_pool() -> SimulatorPool:
    """Return the pool of this process; a forked child creates its own."""
    global _pool, _pool_process
    with _pool_lock:
        if _pool is None or _pool_process != os.getpid():
            _pool, _pool_process = SimulatorPool(), os.getpid()
            atexit.register(_pool.close)
        return _pool
