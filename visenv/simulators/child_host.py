"""Defines the host that runs a simulator in a child process with another interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from visenv.child_process.host import ChildError, ChildProcess
from visenv.errors import ServiceError
from visenv.simulators.host import Call, SimulatorHost, start_error
from visenv.simulators.settings import SimulatorSpec


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
