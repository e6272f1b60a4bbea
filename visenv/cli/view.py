"""Implements `visenv view RUN`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from visenv.cli.screen import open_on_screen
from visenv.terminal import printable


@dataclass(frozen=True)
class ViewCommand:
    """Write the report of a run, a page that works without a network, and open it.

    The page is RUN/report.html. The folder RUN/report/ contains the episodes, which the page loads
    on demand. To move a report, move the whole folder of the run.
    """

    run_folder: Annotated[Path, Positional, arg(metavar="RUN")]
    """A folder under runs/, or the output folder of rollout or eval."""
    compare: Path | None = None
    """The folder of another run, which the page compares with this run."""
    open: bool = True
    """Open the page, if there is a screen."""

    def run(self) -> None:
        """Write report.html into the folder, and print its path."""
        from visenv.viewer import write_report

        path = write_report(self.run_folder, self.compare)
        print(printable(path))
        if self.open:
            open_on_screen(path)
