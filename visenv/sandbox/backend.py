"""Defines where programs run: here, or wherever a `Program` gives an `Execution`."""

from __future__ import annotations

from typing import Protocol

from visenv.sandbox.execution import Execution
from visenv.sandbox.program import Program


class SandboxBackend(Protocol):
    """Runs untrusted programs. Used from many threads at once, and pickled with envs."""

    def start(self) -> None:
        """Get ready, so that the first program need not wait; `run` does it otherwise.

        Raises:
            ConfigurationError: If programs cannot be run safely here.
            ServiceError: If what runs them cannot be reached.
        """
        ...

    def run(self, program: Program) -> Execution:
        """Run a program to its end or its limit. Whatever a program does is an `Execution`.

        Raises:
            ConfigurationError: If programs cannot be run safely here.
            ServiceError: If what runs them failed beyond retries; never by the program's doing.
        """
        ...

    def close(self) -> None:
        """End what runs programs; running ones are killed."""
        ...
