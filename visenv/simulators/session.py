"""The use of simulators by one environment: borrowed at a reset, pickled as a snapshot."""

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

    A pickle in mid-episode holds the task and a snapshot; the copy borrows another host, resets it
    and restores the snapshot when it is used. A session that is no longer referenced gives its host
    back.

    Args:
        spec: The simulator.
        pool: Lends the hosts; None is the pool of the process.
    """

    def __init__(self, spec: SimulatorSpec, pool: SimulatorPool | None = None) -> None:
        self.spec = spec
        self._pool = pool
        self._task: dict[str, Any] = {}
        self._snapshot: bytes | None = None
        self._host: SimulatorHost | None = None
        self._return: Any = None

    @property
    def is_begun(self) -> bool:
        """Return whether an episode is in progress, here or in a snapshot."""
        return self._host is not None or self._snapshot is not None

    @property
    def host(self) -> SimulatorHost | None:
        """Return the host of the present episode, None before a reset and in an unused copy."""
        return self._host

    def reset(self, task: Mapping[str, Any], frames: Any = None) -> SimulatorReply:
        """Begin an episode.

        Raises:
            ConfigurationError: If the simulator cannot be started here; says what to install.
            ServiceError: If the simulator fails.
        """
        self._snapshot = None
        self._task = dict(task)
        if self._host is not None and (self._host.broken or not self._host.is_alive()):
            self.end()
        host = self._host or self._borrow()
        with self._failing():
            return host.reset(self._task, frames=frames)

    def act(self, request: Mapping[str, Any], frames: Any = None) -> SimulatorReply:
        """Act in the present episode.

        Raises:
            ServiceError: If the simulator fails, or no episode goes on.
        """
        host = self._resume()
        with self._failing():
            return host.act(request, frames=frames)

    def frames(self, request: Mapping[str, Any]) -> Frames:
        """Return frames of the present state.

        Raises:
            ServiceError: If the simulator fails, or no episode goes on.
        """
        host = self._resume()
        with self._failing():
            return host.frames(request)

    def fail(self, reason: str) -> ServiceError:
        """End the simulator of this episode, and return the error to raise.

        It is for what a reply says: its form alone is checked by the host.
        """
        host = self._host
        error = ServiceError(BOUNDARY, reason) if host is None else host.fail(reason)
        self.end()
        return error

    def end(self) -> None:
        """End the episode and give the host back."""
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
            raise ServiceError(BOUNDARY, "no episode goes on; call reset first.")
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
        self._return.atexit = False  # the pool closes its hosts
        return host

    @contextlib.contextmanager
    def _failing(self) -> Any:
        """Give a host that fails back, so that the next reset starts another."""
        try:
            yield
        except ServiceError:
            self.end()
            raise
