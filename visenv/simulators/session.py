"""Lets one environment use simulators: borrows a host at its first reset, pickles as a snapshot."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from visenv.errors import ServiceError
from visenv.simulators.host import BOUNDARY, Frames, SimulatorHost, SimulatorReply
from visenv.simulators.pool import SimulatorPool, shared_pool
from visenv.simulators.settings import SimulatorSpec


class SimulatorSession:
    """Plays the episodes of one environment on hosts of a pool.

    A pickle in the middle of an episode contains the task and a snapshot. When the copy is used, it
    borrows another host, resets it and restores the snapshot. A session returns its host when it is
    no longer referenced.

    Args:
        spec: The simulator.
        pool: The pool that lends the hosts; None uses the pool of the process.
    """

    def __init__(self, spec: SimulatorSpec, pool: SimulatorPool | None = None) -> None:
        self.spec = spec
        self._pool = pool
        self._task: dict[str, Any] = {}
        self._snapshot: bytes | None = None
        self._host: SimulatorHost | None = None
        self._return: Any = None

    @property
    def host(self) -> SimulatorHost | None:
        """Return the host of the current episode, None before a reset and in an unused copy."""
        return self._host

    def reset(self, task: Mapping[str, Any], frames: Any = None) -> SimulatorReply:
        """Start an episode, on the host of the last one unless it failed or uses too much memory.

        Raises:
            ConfigurationError: If the simulator cannot be started; the message says what to
                install.
            ServiceError: If the simulator fails.
        """
        self._snapshot = None
        self._task = dict(task)
        if self._host is not None and not self._host.is_reusable():
            self.end()
        host = self._host or self._borrow()
        with self._failing():
            return host.reset(self._task, frames=frames)

    def act(self, request: Mapping[str, Any], frames: Any = None) -> SimulatorReply:
        """Execute an action in the current episode.

        Raises:
            ServiceError: If the simulator fails, or no episode is in progress.
        """
        host = self._resume()
        with self._failing():
            return host.act(request, frames=frames)

    def frames(self, request: Mapping[str, Any]) -> Frames:
        """Return frames of the current state.

        Raises:
            ServiceError: If the simulator fails, or no episode is in progress.
        """
        host = self._resume()
        with self._failing():
            return host.frames(request)

    def fail(self, reason: str) -> ServiceError:
        """Stop the simulator of this episode, and return the error to raise.

        Use this method if the content of a reply is invalid; the host checks only its form.
        """
        host = self._host
        error = ServiceError(BOUNDARY, reason) if host is None else host.fail(reason)
        self.end()
        return error

    def end(self) -> None:
        """End the episode and return the host."""
        self._snapshot = None
        if self._return is not None:
            self._return()
        self._host = self._return = None

    @override
    def __getstate__(self) -> dict[str, Any]:
        snapshot = self._snapshot
        if self._host is not None and not self._host.broken:
            with self._failing():
                snapshot = self._host.snapshot()
        return {"spec": self.spec, "_task": self._task, "_snapshot": snapshot}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["spec"])  # type: ignore[misc]
        self._task, self._snapshot = state["_task"], state["_snapshot"]

    def _resume(self) -> SimulatorHost:
        if self._host is not None:
            return self._host
        if self._snapshot is None:
            raise ServiceError(BOUNDARY, "no episode is in progress; call reset first.")
        snapshot, self._snapshot = self._snapshot, None
        host = self._borrow()
        with self._failing():
            host.reset(self._task)
            host.restore(snapshot)
        return host

    def _borrow(self) -> SimulatorHost:
        pool = self._pool or shared_pool()
        host = pool.borrow(self.spec, self._task)
        self._host = host
        self._return = weakref.finalize(self, pool.give_back, host)
        self._return.atexit = False  # at exit, the pool closes its hosts
        return host

    @contextlib.contextmanager
    def _failing(self) -> Any:
        """Return a host that fails, so that the next reset starts another one."""
        try:
            yield
        except ServiceError:
            self.end()
            raise
