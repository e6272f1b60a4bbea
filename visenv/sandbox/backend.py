"""Defines the interface of a backend, which runs a `Program` and returns an `Execution`."""

from __future__ import annotations

from typing import Protocol

from visenv.sandbox.execution import Execution
from visenv.sandbox.program import Program


class SandboxBackend(Protocol):
    """Runs untrusted programs.

    It is used by many threads at once, and pickled with environments.
    """

    def start(self) -> None:
        """Prepare the backend, so that the first program does not wait; otherwise `run` does this.

        Raises:
            ConfigurationError: If this machine cannot run programs safely.
            ServiceError: If the service that runs the programs cannot be reached.
        """
        ...

    def run(self, program: Program) -> Execution:
        """Run a program to its end or to a limit.

        All behavior of a program results in an `Execution`.

        Raises:
            ConfigurationError: If this machine cannot run programs safely.
            ServiceError: If the service failed beyond its retries; a program never causes this.
        """
        ...

    def close(self) -> None:
        """End the service, and kill the programs that run."""
        ...
