"""Implements `visenv doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DoctorCommand:
    """Show how model-written code is isolated on this machine, and which simulators are installed.

    Each layer of the isolation is tested, and then test programs try forbidden operations. If one
    of them succeeds, the exit status is 1, and environments that run code refuse to start.
    Simulators, their interpreter and OpenGL are listed; it is no error if they are missing.
    """

    isolation: Literal["auto", "namespaces", "landlock"] = "auto"
    """Use the strongest isolation that is available, or test this one."""

    def run(self) -> None:
        """Run the tests and print the results.

        Raises:
            ConfigurationError: If programs cannot be isolated here, or a forbidden operation was
                possible.
        """
        from rich.console import Console
        from rich.table import Table

        from visenv.errors import ConfigurationError
        from visenv.sandbox.examination import examine

        found = examine(self.isolation)
        table = Table("sandbox", "", "", box=None, pad_edge=False, show_header=False)
        for layer, there, detail in found.layers:
            table.add_row(layer, "granted" if there else "refused", detail)
        table.add_section()
        for name, held in found.checks:
            table.add_row(f"check: {name}", "ok" if held else "FAILED", "")
        Console().print(table)
        broken = [name for name, held in found.checks if not held]
        if found.refusal or broken:
            raise ConfigurationError(
                found.refusal or f"The sandbox does not hold: {', '.join(broken)}."
            )
        print(f"programs run in isolation by: {found.mode}\n")
        print_simulators()


def print_simulators() -> None:
    """Print the installed simulators."""
    from rich.console import Console
    from rich.table import Table

    from visenv.simulators.survey import survey

    table = Table("simulators", "", "", box=None, pad_edge=False, show_header=False)
    for finding in survey():
        table.add_row(finding.name, "there" if finding.there else "missing", finding.detail)
    Console().print(table)
