"""Implements `visenv export RUN --to inspect`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from visenv.terminal import printable


@dataclass(frozen=True)
class ExportCommand:
    """Write the episodes of a run in the format of another tool.

    inspect: logs of Inspect in a folder, one for each file of episodes (inspect view --log-dir
    OUT). parquet: one file with a row for each episode, for pandas or datasets.
    """

    run_folder: Annotated[Path, Positional, arg(metavar="RUN")]
    """A folder under runs/, or the output folder of rollout or eval."""
    to: Literal["inspect", "parquet"]
    """The format."""
    out: Path | None = None
    """Path of the output; by default RUN/inspect, or RUN/episodes.parquet."""

    def run(self) -> None:
        """Write the files, and print their paths."""
        if self.to == "inspect":
            from visenv.exports.inspect_log import write_inspect_logs

            for path in write_inspect_logs(
                self.run_folder, self.out or self.run_folder / "inspect"
            ):
                print(printable(path))
        else:
            from visenv.exports.parquet import write_parquet

            out = self.out or self.run_folder / "episodes.parquet"
            print(printable(f"{write_parquet(self.run_folder, out)} episodes in {out}"))
