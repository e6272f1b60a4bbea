"""`visenv data STEP …`: making training and benchmark data, step by step.

The options of each step are here; the work is done by `visenv.algos.curation`, or by
`visenv.data.difficulty`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import OmitSubcommandPrefixes, Positional, arg, subcommand

from visenv.cli.arguments import DataName, EnvName, PolicyName, Settings, check_at_least
from visenv.errors import ConfigurationError
from visenv.makers import env_maker, make_policy
from visenv.registration import load
from visenv.types import Sampling

if TYPE_CHECKING:
    from visenv.data.lines import Lines
    from visenv.data.step import Account, Step
    from visenv.policy import Policy

Rows = Annotated[Path, Positional, arg(metavar="ROWS")]
Pairs = Annotated[Path, Positional, arg(metavar="PAIRS")]
Episodes = Annotated[Path, Positional, arg(metavar="EPISODES")]


@dataclass(frozen=True)
class _Step:
    """What every step has."""

    out: Path
    """File of the kept rows; its journal and its summary are written beside it."""

    def _work(self, step: Step, lines: Lines, concurrency: int = 64) -> None:
        """Run the step under a progress bar, and print what became of the rows."""
        from visenv.cli.tables import progress

        try:
            with progress("rows", len(lines)) as advance:
                account = step.run(lines, self.out, concurrency, advance)
        finally:
            step.close()
        _print(account, self.out)

    def _lines(self, path: Path) -> Lines:
        from visenv.data.lines import JsonLines

        return JsonLines(path)


# ---------------------------------------------------------------------------- steps of an env


@dataclass(frozen=True)
class _Playing(_Step):
    """What every step that works on an environment's samples has."""

    env: EnvName
    """Id, with or without the namespace."""
    data: DataName = None
    """Data set, for example textvqa:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    samples: int | None = None
    """How many; all rows of a data set by default. Procedural data needs it."""
    first: int = 0
    """The first row, or the first seed of procedural data."""
    places: Path | None = None
    """A file of rows that name the samples, instead, as questions and difficulty write."""
    concurrency: int = 16
    """Most samples in work."""

    def _places(self) -> Lines:
        from visenv.data.places import place_lines

        if self.places is not None:
            return self._lines(self.places)
        check_at_least(0, first=self.first)
        check_at_least(1, samples=self.samples)
        return place_lines(self._source(), self.samples, self.first)

    def _source(self) -> Any:
        env = self._maker()()
        env.close()
        base: Any = env.unwrapped
        return base.source

    def _maker(self) -> Any:
        return env_maker(self.env, self.option, self.data)

    def _label(self) -> str:
        return " ".join([self.env, self.data or "", *self.option]).strip()


@dataclass(frozen=True)
class Questions(_Playing):
    """Write an environment's samples as rows: question, images, right response."""

    def run(self) -> None:
        """Write them."""
        step = _part("Questions")(self._maker(), self.out.parent / "images", self._label())
        self._work(step, self._places(), self.concurrency)


@dataclass(frozen=True)
class Difficulty(_Playing):
    """Measure how often a policy is right, and keep what is difficult for it.

    By playing, what is right 5 times of 5 is dropped (ARM-Thinker); by asking straight, what has a
    mean of 0.5 or more in 8 answers (Groundlight). What is kept are places, for --places.
    """

    by: Literal["playing", "asking"] = "playing"
    """Play the environment, or ask the question without it."""
    policy: PolicyName = "openai"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    tries: int | None = None
    """Tries of each sample."""
    threshold: float | None = None
    """A sample with a mean below it is kept."""
    inclusive: bool = False
    """Keep a mean equal to the threshold too."""
    metric: str = "accuracy"
    """The metric that says how right an episode was."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int | None = None
    """Most tokens in a turn."""

    def run(self) -> None:
        """Measure."""
        from visenv.data.difficulty import (
            ARM_THINKER,
            GROUNDLIGHT,
            AskDifficulty,
            PlayDifficulty,
        )

        given = {"samples": self.tries, "threshold": self.threshold, "max_tokens": self.max_tokens}
        changes: dict[str, Any]
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= {"temperature": self.temperature, "inclusive": self.inclusive}
        label = _name_of(self.policy, self.policy_option)
        policy = make_policy(self.policy, self.policy_option)
        step: Step
        if self.by == "playing":
            label = f"{label} on {self._label()}"
            measure = replace(ARM_THINKER, **changes)
            step = PlayDifficulty(self._maker(), policy, measure, self.metric, label)
        else:
            measure = replace(GROUNDLIGHT, **changes)
            source = self._source()
            if not hasattr(source, "score"):
                raise ConfigurationError("--by asking needs a data set, as --data NAME:FOLDER.")
            step = AskDifficulty(source, policy, measure, label=label)
        self._work(step, self._places(), self.concurrency)
        policy.close()


@dataclass(frozen=True)
class Trajectories(_Playing):
    """Let a policy play the agent loop, and keep the episodes."""

    policy: PolicyName = "openai"
    """Name of a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    tries: int = 1
    """Episodes of each sample."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int = 2048
    """Most tokens in a turn."""

    def run(self) -> None:
        """Play."""
        check_at_least(1, tries=self.tries, max_tokens=self.max_tokens)
        check_at_least(0, temperature=self.temperature)
        policy = make_policy(self.policy, self.policy_option)
        label = f"{_name_of(self.policy, self.policy_option)} on {self._label()}"
        sampling = Sampling(self.temperature, self.max_tokens)
        step = _part("Trajectories")(self._maker(), policy, self.out.parent, sampling, label)
        lines = _part("members")(self._places(), self.tries)
        self._work(step, lines, self.concurrency)
        policy.close()


# ---------------------------------------------------------------------------- steps of a writer


@dataclass(frozen=True)
class _Writing(_Step):
    """What every step that has something written has."""

    rows: Rows
    """File of rows: id, question, images, response."""
    policy: PolicyName = "openai"
    """Who writes: a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy, for example model=NAME; may be given several times."""
    attempts: int = 3
    """Most replies to one row."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int = 4096
    """Most tokens in a reply."""
    concurrency: int = 64
    """Most rows in work."""
    seed: int = 0
    """Seeds what is drawn."""

    def _write(self, name: str, *arguments: Any, **options: Any) -> None:
        check_at_least(1, max_tokens=self.max_tokens)
        check_at_least(0, temperature=self.temperature)
        policy: Policy[Any] = make_policy(self.policy, self.policy_option)
        sampling = Sampling(self.temperature, self.max_tokens)
        label = _name_of(self.policy, self.policy_option)
        writer = _part("Writer")(policy, sampling, self.attempts, label=label)
        step = _part(name)(writer, *arguments, seed=self.seed, **options)
        self._work(step, self._lines(self.rows), self.concurrency)
        policy.close()


@dataclass(frozen=True)
class Negatives(_Writing):
    """Have flawed responses written, and make preference pairs of them."""

    count: int = 1
    """Flawed responses to each question."""
    flaws: tuple[str, ...] = ()
    """Kinds of error to draw from; all by default."""

    def run(self) -> None:
        """Write them."""
        flaws = {"flaws": self.flaws} if self.flaws else {}
        self._write("Negatives", count=self.count, **flaws)


@dataclass(frozen=True)
class ArmBench(_Writing):
    """Make judging items of questions with short answers, as ARMBench-VL was made.

    The name of the file to write, <folder>/<track>.jsonl, says which track the items are for.
    """

    tags: tuple[str, ...] = ()
    """Which forms of the track to draw from; all by default."""
    length_ratio: float = 2.0
    """A response may be this many times as long as the right one, or as short."""

    def run(self) -> None:
        """Write them."""
        self._write(
            "ArmBench",
            self.out.parent,
            track=self.out.stem,
            tags=self.tags,
            length_ratio=self.length_ratio,
        )


@dataclass(frozen=True)
class Constraints(_Step):
    """Have instructions answered, and let the text checks judge each constraint, as ARMBench-VL.

    The file to write is <folder>/multimodal_instruction_following.jsonl.
    """

    data: Annotated[str, Positional, arg(metavar="NAME:FOLDER")]
    """Data set of instructions, mm_ifeval:<folder>."""
    policy: PolicyName = "openai"
    """Who answers: a policy (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy; may be given several times."""
    dialect: Literal["strict", "arm", "mmif"] = "strict"
    """How the checks read."""
    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int = 2048
    """Most tokens in a reply."""
    concurrency: int = 64
    """Most instructions in work."""
    seed: int = 0
    """Seeds the sampling."""

    def run(self) -> None:
        """Answer, and check."""
        from visenv.data.open import open_data
        from visenv.data.places import row_lines

        check_at_least(1, max_tokens=self.max_tokens)
        check_at_least(0, temperature=self.temperature)
        source = open_data(self.data)
        policy = make_policy(self.policy, self.policy_option)
        step = _part("Constraints")(
            source,
            policy,
            self.out.parent,
            Sampling(self.temperature, self.max_tokens),
            self.dialect,
            label=f"{_name_of(self.policy, self.policy_option)} on {self.data}",
            seed=self.seed,
        )
        self._work(step, row_lines(source), self.concurrency)
        policy.close()


# ---------------------------------------------------------------------------- steps of rules


@dataclass(frozen=True)
class Dedupe(_Step):
    """Drop pairs whose responses are too alike, and near copies of earlier pairs."""

    pairs: Pairs
    """File of preference pairs."""
    contrast: float = 0.9
    """Pairs whose responses are at least this similar are dropped, 0 to 1."""
    duplicate: float = 0.95
    """Pairs at least this similar to an earlier one with the same images are dropped, 0 to 1."""

    def run(self) -> None:
        """Drop them."""
        step = _part("Dedupe")(self.contrast, self.duplicate)
        self._work(step, self._lines(self.pairs))


@dataclass(frozen=True)
class Arrange(_Step):
    """Make judging items of preference pairs, in the layout of ARMBench-VL."""

    pairs: Pairs
    """File of preference pairs."""
    both_orders: bool = False
    """Give each pair in both orders, instead of in one that is drawn."""
    seed: int = 0
    """Seeds the order."""

    def run(self) -> None:
        """Make them."""
        step = _part("Arrange")(self.out.parent, self.both_orders, self.seed)
        self._work(step, self._lines(self.pairs))


@dataclass(frozen=True)
class Filter(_Step):
    """Keep episodes that are well formed, right, and used a tool."""

    episodes: Episodes
    """File of episodes."""
    accuracy: float = 1.0
    """Least value of the metric."""
    metric: str = "accuracy"
    """The metric that says how right an episode was."""
    tool_calls: int = 1
    """Fewest tool calls that succeeded."""

    def run(self) -> None:
        """Keep them."""
        step = _part("Filter")(
            self.episodes.parent / "images",
            self.out.parent,
            self.accuracy,
            self.metric,
            self.tool_calls,
        )
        self._work(step, self._lines(self.episodes))


@dataclass(frozen=True)
class Export(_Step):
    """Write episodes as chat messages, images as files, for the trainers of others."""

    episodes: Episodes
    """File of episodes."""
    layout: Literal["llama-factory", "trl"] = "llama-factory"
    """Who reads them."""

    def run(self) -> None:
        """Write them."""
        images = self.episodes.parent / "images"
        step = _part("Export")(images, self.out.parent, self.layout)
        self._work(step, self._lines(self.episodes))


@dataclass(frozen=True)
class Data:
    """Make training and benchmark data, step by step; an interrupted step goes on where it was."""

    step: OmitSubcommandPrefixes[
        Annotated[Questions, subcommand("questions")]
        | Annotated[Negatives, subcommand("negatives")]
        | Annotated[Dedupe, subcommand("dedupe")]
        | Annotated[Arrange, subcommand("arrange")]
        | Annotated[Difficulty, subcommand("difficulty")]
        | Annotated[Trajectories, subcommand("trajectories")]
        | Annotated[Filter, subcommand("filter")]
        | Annotated[Export, subcommand("export")]
        | Annotated[ArmBench, subcommand("armbench")]
        | Annotated[Constraints, subcommand("constraints")]
    ]

    def run(self) -> None:
        """Run the step."""
        self.step.run()


def _part(name: str) -> Any:
    """A step, or what belongs to one: named by a string, as the core imports no part."""
    return load("recipe", f"visenv.algos.curation:{name}")


def _name_of(policy: str, options: list[str]) -> str:
    """A policy as the journal knows it: what is replied depends on the model, not on its server."""
    return " ".join([policy, *(each for each in options if each.startswith("model="))])


def _print(account: Account, out: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table("", "rows", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[1].justify = "right"
    table.add_row("kept", str(account.kept))
    for title, counts in (("dropped", account.dropped), ("failed", account.failed)):
        for reason, count in counts.items():
            table.add_row(f"{title}: {reason}", str(count))
    table.add_row("all", str(account.lines))
    Console().print(table)
    print(f"{account.rows} rows in {out}")
