"""`visenv view RUN`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from visenv.cli.screen import open_on_screen


@dataclass(frozen=True)
class View:
    """Make a run's report, one page that works without a network, and open it."""

    run_folder: Annotated[Path, Positional, arg(metavar="RUN")]
    """A folder under runs/, or what rollout and eval wrote."""
    open: bool = True
    """Open the page where there is a screen."""

    def run(self) -> None:
        """Write report.html into the folder, and say where it is."""
        from visenv.viewer import write_report

        path = write_report(self.run_folder)
        print(path)
        if self.open:
            open_on_screen(path)
