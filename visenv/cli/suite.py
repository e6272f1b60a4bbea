"""Implements `visenv suite NAME --folder NAME=PATH`."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from visenv.cli.arguments import PolicyName, Settings, check_at_least
from visenv.errors import ConfigurationError

if TYPE_CHECKING:
    from visenv.evaluation.suite import Column, ColumnResult


@dataclass(frozen=True)
class PlaySuite:
    """Evaluate a policy on all data sets of a paper's table, and print the table.

    Every row of every data set is played. Rows that cannot be used, such as one whose image is
    missing, are listed and are in no mean. A column whose folder is not given is not played, and
    the table then has no average. With --out, the episodes of each column are saved in a folder of
    its own, and the same command goes on after a kill.
    """

    name: Annotated[str, Positional, arg(metavar="SUITE")]
    """Name of a suite, or module:attribute."""
    folder: Annotated[list[str], arg(metavar="NAME=PATH")] = field(default_factory=list)
    """Where a data set is; may be given several times."""
    policy: PolicyName = "oracle"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    option: Settings = field(default_factory=list)
    """An argument of the environments of all columns; may be given several times."""
    episodes: int | None = None
    """How many rows of each data set; all by default."""
    seed: int = 0
    """Other draws of a policy that samples."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy."""
    max_tokens: int = 2048
    """Most tokens in a turn."""
    concurrency: int = 32
    """Episodes that are played, and held in memory, at the same time."""
    out: Path | None = None
    """Folder for suite.md, suite.json, and a folder for each column."""

    def run(self) -> None:
        """Play, print the table, and write it where asked."""
        from visenv.evaluation.suite import Suite, as_json, markdown, read_folders
        from visenv.registration import load

        check_at_least(
            1, episodes=self.episodes, max_tokens=self.max_tokens, concurrency=self.concurrency
        )
        check_at_least(0, temperature=self.temperature, seed=self.seed)
        suite = load("suite", self.name)
        if not isinstance(suite, Suite):
            raise ConfigurationError(f"The suite {self.name!r} must be a Suite, got {suite!r:.80}.")
        folders = read_folders(suite, self.folder)
        if not folders:
            names = " ".join(f"--folder {name}=PATH" for name in suite.folders)
            raise ConfigurationError(f"Name the folders of the data sets: {names}.")
        results = [self._column(column, folders) for column in suite.columns]
        page = markdown(f"{suite.title}: {self.policy}", results)
        print(page, end="")
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / "suite.md").write_text(page)
            (self.out / "suite.json").write_text(json.dumps(as_json(results), indent=2) + "\n")

    def _column(self, column: Column, folders: dict[str, str]) -> ColumnResult:
        """Play a column and write its summary."""
        from visenv.cli.evaluate import Totals
        from visenv.cli.playing import Player, PlaySettings
        from visenv.evaluation.held_out import places
        from visenv.evaluation.suite import ColumnResult, column_result
        from visenv.evaluation.summary import summarise
        from visenv.evaluation.summary_files import write_summary

        missing = [name for name in column.folders if name not in folders]
        if missing:
            return ColumnResult(column.name, skipped=f"give --folder {missing[0]}=PATH")
        chosen = PlaySettings(
            command="suite",
            env=column.env,
            option=[*column.words(), *self.option],
            data=column.data.format_map(folders),
            policy=self.policy,
            policy_option=self.policy_option,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            episodes=self.episodes,
            repeats=1,
        )
        with closing(Player(chosen, self.concurrency)) as player:
            env = player.make_env()
            source = getattr(env.unwrapped, "source", None)
            unread = [str(problem) for problem in getattr(source, "problems", ())]
            folder = None if self.out is None else self.out / column.slug
            played = player.play(places(env, self.episodes, seed=self.seed), folder)
            env.close()
        totals: Totals = getattr(source, "totals", lambda _: {})
        summary = summarise(played, unread, totals(played))
        if folder is not None:
            write_summary(folder, f"{column.name}, {self.policy}", summary, played)
        return column_result(column, summary, unread)
