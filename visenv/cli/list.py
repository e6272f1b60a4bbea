"""`visenv list`."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.registration import ALGORITHMS, DATA, ENVIRONMENTS, POLICIES


@dataclass(frozen=True)
class List:
    """List the environments, policies, algorithms and data sets."""

    def run(self) -> None:
        """Print them."""
        from rich.console import Console
        from rich.table import Table

        table = Table("environment", "what it is", box=None, pad_edge=False)
        for name, entry in ENVIRONMENTS.items():
            table.add_row(name, entry.summary)
        console = Console()
        console.print(table)
        console.print()
        for title, names in (("policies", POLICIES), ("algorithms", ALGORITHMS), ("data", DATA)):
            console.print(f"{title}: {', '.join(names)}")
