"""Implements `visenv view RUN`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from visenv.cli.screen import open_on_screen


@dataclass(frozen=True)
class ViewCommand:
    """Make a run's report, a page that works without a network, and open it.

    The page is RUN/report.html. Beside it RUN/report/ holds the episodes, which the page loads when
    they are looked at. To move a report, move the whole folder of the run.
    """

    run_folder: Annotated[Path, Positional, arg(metavar="RUN")]
    """A folder under runs/, or what rollout and eval wrote."""
    compare: Path | None = None
    """The folder of another run, to compare with on the same page."""
    open: bool = True
    """Open the page where there is a screen."""

    def run(self) -> None:
        """Write report.html into the folder, and say where it is."""
        from visenv.viewer import write_report

        path = write_report(self.run_folder, self.compare)
        print(path)
        if self.open:
            open_on_screen(path)
