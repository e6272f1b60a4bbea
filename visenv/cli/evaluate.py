"""Implements `visenv eval` and `visenv judge-check`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional, arg

from visenv.cli.arguments import ControlName, DataName, PolicyName, Settings, check_at_least
from visenv.errors import ConfigurationError
from visenv.terminal import printable, shell_word

if TYPE_CHECKING:
    from visenv.evaluation.summary import ControlRow, Summary
    from visenv.types import Episode

Totals = Callable[[Sequence["Episode"]], dict[str, float]]
"""Computes the scores of a data set that are not means over episodes."""

_ORACLE = "oracle"


@dataclass(frozen=True)
class JudgeCheckCommand:
    """Compare a judge with exact ground truth, and try answers that it must reject."""

    judge: Annotated[str, tyro.conf.Positional]
    """module:function; the function takes a Scorer, and returns an async function that scores a
    JudgeItem from 0 to 1.
    """

    scorer: str
    """The model that the judge uses, for example openai:my-model?base_url=http://localhost:8000/v1
    or recorded:replies.jsonl.
    """

    items: Path
    """File with one JSON object per line: question, references, answer, truth, and optionally
    options and images (paths).
    """

    record: Path | None = None
    """Record the model's replies in this file; later runs read the replies from it."""

    threshold: float = 0.5
    """The score from which the judge accepts an answer."""

    def run(self) -> None:
        """Run the judge on the items, and print the shares."""
        from rich.console import Console
        from rich.table import Table

        from visenv import background
        from visenv.cli.tables import check_not_all_failed
        from visenv.registration import load
        from visenv.scorers import Scorer
        from visenv.scorers.evaluation import check_judge, read_items
        from visenv.terminal import rich_text

        scorer = Scorer.parse(self.scorer)
        if self.record is not None:
            scorer = Scorer("recorded", file=str(self.record), inner=scorer.description())
        make: Any = load("scorer", self.judge)
        report = background.run(check_judge(make(scorer), read_items(self.items), self.threshold))
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, share in report.rows():
            table.add_row(rich_text(name), str(share))
        Console().print(table)
        print(f"without a verdict: {report.failed}")
        check_not_all_failed(
            "requests got no verdict", report.requests, report.failed, report.first_failure
        )


@dataclass(frozen=True)
class EvaluateCommand:
    """Evaluate a policy on every row of a data set, or on held-out procedural scenes.

    The table has a column for each group of the data (kind, or track and tag), with 95 % intervals
    over samples. Every episode counts: an episode that was aborted after a failure is listed and
    counts as 0. Rows that cannot be read are listed, and are no episodes. If every episode was
    aborted, the exit status is 1. With --out, each episode is written when it ends. If the command
    is killed, run it again: it plays the missing episodes.
    """

    env: Annotated[str, Positional, arg(metavar="ENV")] = ""
    """Id (visenv/ may be omitted), module:Id or module:Class; or a file of saved episodes (.jsonl)
    to summarize again.
    """
    policy: PolicyName | None = None
    """Name of a policy (visenv list), or module:Class; by default the oracle, which knows the
    answers. --control needs another one.
    """
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    data: DataName = None
    """Data set, for example vstar:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    episodes: int | None = None
    """Number of samples, each of which is played `--repeats` times; by default all rows of a data
    set, or 256 scenes.
    """
    repeats: int = 1
    """Number of times that each sample is played; with 2 or more the table has avg@k and pass@k."""
    seed: int = 0
    """Seed of the held-out scenes and of the sampling of the policy."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy."""
    max_tokens: int = 2048
    """Maximum number of tokens in a turn."""
    control: list[ControlName] = field(default_factory=list)
    """Also play the same samples under a control, and report the paired difference: no_image,
    no_tool (tool necessity), shuffled_results or, if the task has it, random_crop; may be given
    several times.
    """
    judge: str | None = None
    """A scorer that also judges the answers, for example openai:gpt-4o or rules:module:function;
    adds the metric "judge".
    """
    concurrency: int = 32
    """Number of episodes that are played, and held in memory, at the same time."""
    compare: Annotated[tuple[Path, Path] | None, arg(metavar="A B")] = None
    """Two saved evaluations (folders or .jsonl files); print the difference A - B, paired by
    sample.
    """
    out: Path | None = None
    """Folder for the table (summary.md, .csv, .json), items.csv, run.json and episodes.jsonl, with
    a subfolder for each control; a run in it with the same settings is resumed.
    """

    def run(self) -> None:
        """Play the episodes, print the table, and write it to the output folder."""
        self._check()
        if self.compare is not None:
            self._compare(*self.compare)
        elif self.env.endswith(".jsonl"):
            self._sum_up_saved()
        else:
            self._play()

    def _check(self) -> None:
        check_at_least(
            1,
            episodes=self.episodes,
            repeats=self.repeats,
            max_tokens=self.max_tokens,
            concurrency=self.concurrency,
        )
        check_at_least(0, temperature=self.temperature, seed=self.seed)
        if (self.compare is None) == (not self.env):
            raise ConfigurationError(
                "Give one of an environment, a file of episodes and --compare A B, got "
                f"{'none' if self.compare is None else 'two'} of them."
            )
        if self.control and (self.compare is not None or self.env.endswith(".jsonl")):
            raise ConfigurationError(
                "--control plays an environment, got "
                f"{self.env or '--compare'}: name an environment, or omit --control."
            )
        if len(set(self.control)) < len(self.control):
            raise ConfigurationError(f"--control must not repeat a control, got {self.control}.")

    # ------------------------------------------------------------------ new episodes

    def _play(self) -> None:
        from visenv.cli.playing import Player, PlaySettings
        from visenv.cli.tables import check_not_all_aborted
        from visenv.evaluation.answer_judge import AnswerJudge
        from visenv.evaluation.compare import control_row
        from visenv.evaluation.controls import controlled
        from visenv.evaluation.held_out import places
        from visenv.evaluation.summary import summarize
        from visenv.evaluation.summary_files import write_summary
        from visenv.makers import env_id
        from visenv.scorers import Scorer

        policy = self.policy or _ORACLE
        chosen = PlaySettings(
            command="eval",
            env=self.env,
            option=self.option,
            data=self.data,
            policy=policy,
            policy_option=self.policy_option,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            episodes=self.episodes,
            repeats=self.repeats,
            judge=self.judge,
        )
        revise = None if self.judge is None else AnswerJudge(Scorer.parse(self.judge)).judged
        with closing(Player(chosen, self.concurrency, revise)) as player:
            for control in self.control:  # raises for a wrong name before any episode
                controlled(player.make_env, control)
            if self.control and self.policy is None:
                raise ConfigurationError(
                    "A control shows how much a policy depends on images or tools, and the oracle, "
                    "which plays by default, knows the answers without them. Name the policy to "
                    "measure, for example --policy openai --policy-option model=NAME."
                )
            env = player.make_env()
            source = getattr(env.unwrapped, "source", None)
            # Unreadable rows are reported when the data set is opened; a row that fails later is an
            # aborted episode.
            unread = [str(problem) for problem in getattr(source, "problems", ())]
            totals: Totals = getattr(source, "totals", lambda _: {})
            specs = places(env, self.episodes, seed=self.seed, repeats=self.repeats)
            played = player.play(specs, self.out)
            controls: list[ControlRow] = []
            groups = [("", played)]
            title = f"{env_id(self.env)}, {policy}, {self.data or 'held-out scenes'}"
            for control in self.control:
                folder = None if self.out is None else self.out / control
                under = player.play(specs, folder, control)
                controls.append(control_row(control, played, under))
                groups.append((f"the control {control}", under))
                if folder is not None:
                    summary = summarize(under, unread, totals(under))
                    write_summary(folder, f"{title}, {control}", summary, under)
            env.close()
        self._report(title, summarize(played, unread, totals(played), controls), played)
        if controls and policy == _ORACLE:
            print(
                "The oracle knows the answers without images and tools, so its differences under "
                "controls say nothing about a model."
            )
        check_not_all_aborted(groups)

    # ------------------------------------------------------------------ saved episodes

    def _sum_up_saved(self) -> None:
        from visenv.cli.tables import check_not_all_aborted
        from visenv.evaluation.summary import summarize

        episodes = sorted(self._judged(), key=lambda each: (each.group, each.member))
        self._report(self.env, summarize(episodes), episodes)
        check_not_all_aborted([("", episodes)])

    def _judged(self) -> list[Episode]:
        """Judge the saved episodes, write them to the output folder, and drop their messages."""
        from visenv.episodes import read_episodes
        from visenv.evaluation.answer_judge import AnswerJudge
        from visenv.rollout.collector import for_each
        from visenv.rollout.run_folder import RunFolder
        from visenv.scorers import Scorer

        judge = None if self.judge is None else AnswerJudge(Scorer.parse(self.judge))
        episodes: list[Episode] = []

        async def judged(episode: Episode) -> Episode:
            return episode if judge is None else await judge.judged(episode)

        with ExitStack() as stack:
            run = None
            if self.out is not None:
                settings = {"command": "eval", "env": self.env, "judge": self.judge}
                run = stack.enter_context(RunFolder(self.out, settings))
                if run.known:
                    raise ConfigurationError(
                        f"{run.episodes_file} contains the episodes of an earlier run; choose "
                        "another folder with --out."
                    )

            def keep(episode: Episode) -> None:
                if run is not None:
                    run.add(episode)
                episodes.append(episode.without_messages())

            saved = read_episodes(self.env, messages=run is not None, required=True)
            for_each(saved, judged, keep, self.concurrency)
        return episodes

    def _compare(self, first: Path, second: Path) -> None:
        from visenv.cli.tables import print_comparison
        from visenv.episodes import read_episodes
        from visenv.evaluation.compare import compare
        from visenv.rollout.run_folder import EPISODES_FILE

        one, other = (
            list(
                read_episodes(
                    path / EPISODES_FILE if path.is_dir() else path, messages=False, required=True
                )
            )
            for path in (first, second)
        )
        print(printable(f"A: {first}"), printable(f"B: {second}"), sep="\n")
        print_comparison(compare(one, other))

    # ------------------------------------------------------------------ reports

    def _report(self, title: str, summary: Summary, episodes: list[Episode]) -> None:
        from visenv.cli.tables import print_summary
        from visenv.evaluation.summary_files import write_summary

        print_summary(summary)
        for item, status, reason in summary.failures:
            if status != "unanswered":  # the table counts these; the files list them
                print(printable(f"{status}: {item}: {reason}"))
        if self.out is not None:
            write_summary(self.out, title, summary, episodes)
            view = f"visenv view {shell_word(self.out)}"
            print(f"written to {printable(self.out)}; look at the episodes: {view}")
