"""Implements `visenv suite` and `visenv compare`."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tyro.conf import Positional, arg

from visenv.cli.arguments import PolicyName, Settings, check_at_least
from visenv.cli.tables import check_not_all_failed
from visenv.errors import ConfigurationError
from visenv.files import check_no_link, output_folder, write_text
from visenv.terminal import printable_lines

if TYPE_CHECKING:
    from visenv.cli.playing import Player
    from visenv.evaluation.suite import ColumnResult, Suite, SuiteColumn, TableRow
    from visenv.rollout import EpisodeSpec
    from visenv.types import Episode


@dataclass(frozen=True)
class CompareCommand:
    """Train algorithms on a suite of tiny tasks, and print a table with 95 % intervals.

    GRPO, rejection sampling and filtered SFT are always part of the table. For each task and seed,
    all algorithms start from the same warm-up. OUT contains a file for each finished cell (an
    algorithm, a task and a seed); the same command continues from them, also in another checkout.
    It also contains results.md and results.png.
    """

    algorithms: Annotated[list[str], arg(metavar="NAME")] = field(default_factory=list)
    """A further algorithm (visenv list), or module:Class; may be given several times."""
    tasks: Annotated[list[str], arg(metavar="NAME")] = field(default_factory=list)
    """A task of the suite, or a TOML file of a recipe; may be given several times. By default all
    tasks of the suite.
    """
    seeds: Annotated[list[int], arg(metavar="SEED")] = field(default_factory=list)
    """A seed; may be given several times. By default 0, 1 and 2."""
    num_generations: Annotated[list[int], arg(metavar="SIZE")] = field(default_factory=list)
    """A further size of groups with which GRPO is run; may be given several times."""
    quick: bool = False
    """Take two tasks and one seed unless --tasks or --seeds are given.

    This is planned for at most 15 minutes on two cores.
    """
    minutes: float = math.inf
    """Number of minutes after which no cell is started; 0 only prints the table."""
    threads: int = 2
    """Number of threads of the policy."""
    out: Path = Path("runs/compare/results")
    """Folder of the finished cells, the table and the picture."""
    runs: Path = Path("runs/compare")
    """Folder of the runs, with checkpoints."""
    against: Path | None = None
    """Another folder of results, whose algorithms are added to the table."""

    def run(self) -> None:
        """Run the cells that are not finished, and print the table.

        Raises:
            ConfigurationError: If an option has an invalid value.
        """
        from visenv.registration import load

        check_at_least(0, minutes=self.minutes, seeds=min(self.seeds, default=0))
        check_at_least(1, threads=self.threads)
        check_at_least(2, num_generations=min(self.num_generations, default=2))
        load("command", "compare")(
            self.algorithms,
            self.tasks,
            self.seeds,
            self.num_generations,
            quick=self.quick,
            minutes=self.minutes,
            threads=self.threads,
            out=self.out,
            runs=self.runs,
            against=self.against,
        )


class _Asked(NamedTuple):
    """Holds a policy of the table, and the folder for its episodes."""

    label: str
    policy: str
    options: Sequence[str]
    out: Path | None


@dataclass(frozen=True)
class SuiteCommand:
    """Evaluate policies on all columns of a paper's table, and print the table.

    All rows of each data set are played, or the number of samples that the suite defines. Rows that
    cannot be used, for example because an image is missing, are listed and are not part of any
    mean. A column without a folder is not played, and the table then has no average. Suites of
    tasks with actions also play every policy without vision. With --out, the episodes of each
    column are saved in a separate folder, and the same command resumes an interrupted run.
    """

    name: Annotated[str, Positional, arg(metavar="SUITE")]
    """Name of a suite, or module:attribute."""
    folder: Annotated[list[str], arg(metavar="NAME=PATH")] = field(default_factory=list)
    """Folder of a data set; may be given several times."""
    policy: PolicyName = "oracle"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    row: Annotated[list[str], arg(metavar="'POLICY KEY=VALUE ...'")] = field(default_factory=list)
    """A policy with its arguments, instead of --policy; may be given several times, once for each
    row of the table.
    """
    option: Settings = field(default_factory=list)
    """An argument of the environments of all columns; may be given several times."""
    episodes: int | None = None
    """Number of samples of each column, each of which is played `--repeats` times; by default as
    defined by the suite.
    """
    repeats: int | None = None
    """Number of times that each sample is played; by default as defined by the suite."""
    seed: int = 0
    """Seed of the held-out scenes and of the sampling of the policy."""
    temperature: float | None = None
    """Sampling temperature, 0 is greedy; by default as defined by the suite."""
    max_tokens: int = 2048
    """Maximum number of tokens in a turn."""
    concurrency: int = 32
    """Number of episodes that are played, and held in memory, at the same time."""
    out: Path | None = None
    """Folder for suite.md, suite.json, and a folder for each column; with --row, in a folder for
    each row.
    """

    def run(self) -> None:
        """Play the columns, print the table, and write it to the output folder."""
        from visenv.evaluation.suite import Suite, as_json, markdown, read_folders
        from visenv.registration import load

        check_at_least(
            1,
            episodes=self.episodes,
            repeats=self.repeats,
            max_tokens=self.max_tokens,
            concurrency=self.concurrency,
        )
        check_at_least(0, temperature=self.temperature, seed=self.seed)
        suite = load("suite", self.name)
        if not isinstance(suite, Suite):
            raise ConfigurationError(f"The suite {self.name!r} must be a Suite, got {suite!r:.80}.")
        folders = read_folders(suite, self.folder)
        if suite.folders and not folders:
            names = " ".join(f"--folder {name}=PATH" for name in suite.folders)
            raise ConfigurationError(f"Give the folders of the data sets: {names}.")
        rows = [row for asked in self._asked() for row in self._rows(suite, asked, folders)]
        page = markdown(suite, rows)
        print(printable_lines(page), end="")
        if self.out is not None:
            folder = output_folder(self.out)
            write_text(folder / "suite.md", page)
            write_text(folder / "suite.json", json.dumps(as_json(suite, rows), indent=2) + "\n")
        _check_not_all_aborted(rows)

    def _asked(self) -> list[_Asked]:
        """Return the policies of the table."""
        if self.out is not None:
            check_no_link(self.out)
        if not self.row:
            return [_Asked(self.policy, self.policy, self.policy_option, self.out)]
        if self.policy_option:
            raise ConfigurationError(
                "--policy-option belongs to --policy, got "
                f"{' '.join(self.policy_option)} with --row: write the options into the row."
            )
        asked = []
        for row in self.row:
            words = shlex.split(row)
            if not words:
                raise ConfigurationError(
                    "A --row starts with a policy, for example 'cot policy=openai'."
                )
            slug = re.sub(r"[^a-z0-9]+", "-", row.lower()).strip("-")
            out = None if self.out is None else self.out / slug
            if out is not None:
                check_no_link(out)
            asked.append(_Asked(row, words[0], words[1:], out))
        if len({each.out or each.label for each in asked}) < len(asked):
            raise ConfigurationError(
                f"The options --row must differ, also as names of folders, got {list(self.row)}."
            )
        return asked

    def _rows(
        self, suite: Suite, asked: _Asked, folders: Mapping[str, str]
    ) -> Iterator[TableRow]:  # fmt: skip
        """Yield the row of a policy, and its rows under the controls."""
        from visenv.evaluation.suite import TableRow

        columns = [self._column(suite, column, asked, folders) for column in suite.columns]
        for place, control in enumerate((None, *suite.controls)):
            label = asked.label if control is None else f"{asked.label}, {control}"
            yield TableRow(label, tuple(results[place] for results in columns))

    def _column(
        self, suite: Suite, column: SuiteColumn, asked: _Asked, folders: Mapping[str, str]
    ) -> list[ColumnResult]:
        """Play a column without and with each control, and write the summaries."""
        from visenv.cli.playing import Player, PlaySettings
        from visenv.evaluation.held_out import places
        from visenv.evaluation.suite import ColumnResult

        missing = [name for name in column.folders if name not in folders]
        if missing:
            skipped = ColumnResult(column.name, skipped=f"give --folder {missing[0]}=PATH")
            return [skipped] * (1 + len(suite.controls))
        episodes = suite.episodes if self.episodes is None else self.episodes
        chosen = PlaySettings(
            command="suite",
            env=column.env,
            option=[*column.words(), *self.option],
            data=column.data.format_map(folders) or None,
            policy=asked.policy,
            policy_option=asked.options,
            temperature=suite.temperature if self.temperature is None else self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            episodes=episodes,
            repeats=suite.repeats if self.repeats is None else self.repeats,
        )
        with closing(Player(chosen, self.concurrency)) as player:
            env = player.make_env()
            specs = places(env, episodes, seed=self.seed, repeats=chosen.repeats)
            source = getattr(env.unwrapped, "source", None)
            env.close()
            return [
                _play(suite, column, asked, player, specs, source, control)
                for control in (None, *suite.controls)
            ]


def _check_not_all_aborted(rows: Sequence[TableRow]) -> None:
    """Raise an error if every episode of a row of the table was aborted."""
    for row in rows:
        episodes = sum(each.episodes for each in row.results)
        aborted = sum(each.aborted for each in row.results)
        reason = next((each.failure for each in row.results if each.failure), "")
        what = f"episodes of {row.label!r} were aborted"
        check_not_all_failed(what, episodes, aborted, reason)


def _play(
    suite: Suite,
    column: SuiteColumn,
    asked: _Asked,
    player: Player,
    specs: Sequence[EpisodeSpec],
    source: object,
    control: str | None,
) -> ColumnResult:
    """Play a column, write its summary, and return its result."""
    from visenv.evaluation.suite import column_result
    from visenv.evaluation.summary import summarize
    from visenv.evaluation.summary_files import write_summary

    unread = [str(problem) for problem in getattr(source, "problems", ())]
    totals: Callable[[Sequence[Episode]], dict[str, float]] = getattr(
        source, "totals", lambda _: {}
    )
    folder = None if asked.out is None else asked.out / column.slug
    if folder is not None and control is not None:
        check_no_link(folder)
        folder = folder / control
    played = player.play(specs, folder, control)
    summary = summarize(played, unread, totals(played))
    if folder is not None:
        under = "" if control is None else f", {control}"
        write_summary(folder, f"{column.name}, {asked.label}{under}", summary, played)
    return column_result(column, suite.metric, summary, unread)
