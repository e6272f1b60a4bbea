"""`visenv view RUN`."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class View:
    """Make a run's static report, and open it."""

    run_folder: tyro.conf.Positional[Path]
    """A folder under runs/, or what rollout and eval wrote."""
    open: bool = True
    """Open the page in a browser."""

    def run(self) -> None:
        """Write report.html into the folder, and say where it is."""
        from visenv.viewer import write_report

        path = write_report(self.run_folder)
        print(path)
        if self.open:
            webbrowser.open(path.resolve().as_uri())
