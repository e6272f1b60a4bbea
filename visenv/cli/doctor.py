"""Implements `visenv doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DoctorCommand:
    """Say how code that a model wrote is isolated on this machine, and which simulators there are.

    Each layer of the isolation is tried, then programs try what no program may. Ends with status 1
    if something is wrong; then environments that run code refuse to. Simulators, their interpreter
    and OpenGL are listed; what is missing of them is no fault.
    """

    isolation: Literal["auto", "namespaces", "landlock"] = "auto"
    """Take the strongest that is granted, or look at this one."""

    def run(self) -> None:
        """Examine and print.

        Raises:
            ConfigurationError: If programs are refused here, or something was possible that must
                not be.
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
            table.add_row(f"check: {name}", "as it must be" if held else "NOT as it must be", "")
        Console().print(table)
        broken = [name for name, held in found.checks if not held]
        if found.refusal or broken:
            raise ConfigurationError(
                found.refusal or f"The sandbox does not hold: {', '.join(broken)}."
            )
        print(f"programs run in isolation by: {found.mode}\n")
        print_simulators()


def print_simulators() -> None:
    """Print what simulators there are."""
    from rich.console import Console
    from rich.table import Table

    from visenv.simulators.survey import survey

    table = Table("simulators", "", "", box=None, pad_edge=False, show_header=False)
    for finding in survey():
        table.add_row(finding.name, "there" if finding.there else "missing", finding.detail)
    Console().print(table)
