"""Implements the commands for saved episodes: `visenv view`, `visenv export`, `visenv rescore`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from visenv.cli.arguments import DataName, Settings
from visenv.terminal import printable

if TYPE_CHECKING:
    from visenv.types import Episode


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


@dataclass(frozen=True)
class RescoreCommand:
    """Compute the rewards of saved episodes again, from their events and ground truth.

    Each sample is read again from its data source, or generated again from its seed, and must equal
    the sample that was played. Verdicts of judges are read from the file. An episode whose reward
    or one of whose terms differs is counted as changed.
    """

    file: Annotated[Path, Positional]
    """File of episodes (JSONL)."""
    reward: str | None = None
    """Name of the reward (visenv card); by default the reward of the file."""
    data: DataName = None
    """Data set, if it is now in another folder."""
    option: Settings = field(default_factory=list)
    """An argument of the environment to change; may be given several times."""
    ask: bool = False
    """Request verdicts from judges if the file does not contain them."""
    trust: bool = False
    """Let the file name code, programs, models and servers, for this call. They run with your
    rights. By default a file may name only registered objects; your own environment needs this.
    """
    out: Path | None = None
    """File to write the episodes to, with their new rewards."""

    def run(self) -> None:
        """Compute the rewards, and print how many changed."""
        from visenv.cli.tables import check_not_all_failed
        from visenv.episodes import read_episodes, write_episodes
        from visenv.errors import ConfigurationError
        from visenv.evaluation.rescore import Rescorer
        from visenv.makers import settings

        if self.out is not None and self.out.exists():
            raise ConfigurationError(f"{self.out} exists; name a new file.")
        given: dict[str, Any] = {"reward": self.reward, "data": self.data}
        options = {name: value for name, value in given.items() if value is not None}
        options |= settings(self.option)
        rescorer = Rescorer(options, ask_missing=self.ask, trust=self.trust)
        counts: Counter[str] = Counter()
        rescored: list[Episode] = []
        first_failure = ""
        for episode in read_episodes(self.file, required=True):
            new = rescorer.rescore(episode)
            counts[_outcome(episode, new)] += 1
            if episode.failure is not None:
                first_failure = first_failure or str(episode.failure)
            if self.out is not None:
                rescored.append(new)
        rescorer.close()
        for name in rescorer.trusted:
            print(printable(f"trusted: {name}"))
        for name in ("equal", "changed", "aborted"):
            print(f"{name}: {counts[name]}")
        if self.out is not None:
            write_episodes(self.out, rescored)
            print(printable(f"written to {self.out}"))
        what = "episodes were aborted"
        check_not_all_failed(what, counts.total(), counts["aborted"], first_failure)


def _outcome(old: Episode, new: Episode) -> str:
    if old.failure is not None:
        return "aborted"
    is_equal = new.reward.hex() == old.reward.hex() and dict(new.terms) == dict(old.terms)
    return "equal" if is_equal else "changed"


def open_on_screen(path: Path) -> None:
    """Open a file with the system's viewer for its type; do nothing if there is no screen."""
    on_mac = sys.platform == "darwin"
    viewer = shutil.which("open" if on_mac else "xdg-open")
    if viewer and (on_mac or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        quiet = subprocess.DEVNULL
        subprocess.Popen([viewer, str(path)], stdin=quiet, stdout=quiet, stderr=quiet)
