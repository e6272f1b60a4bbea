"""Implements `visenv rescore FILE --reward …`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from visenv.cli.arguments import DataName, Settings
from visenv.terminal import printable

if TYPE_CHECKING:
    from visenv.types import Episode


@dataclass(frozen=True)
class RescoreCommand:
    """Compute the rewards of saved episodes again, from their events and ground truth.

    Each sample is read again from its data source, or generated again from its seed, and must equal
    the sample that was played. Verdicts of judges are read from the file. An episode whose reward
    or one of whose terms differs is counted as changed.
    """

    file: Annotated[Path, tyro.conf.Positional]
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
        from visenv.cli.failures import check_not_all_failed
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
