"""Holds the common options of the steps of `visenv data`: files, environment, policy, writer.

Fields are keyword-only, so that a class can have fields with a default before fields without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from visenv.cli.arguments import DataName, EnvName, PolicyName, Settings, check_at_least
from visenv.errors import ConfigurationError
from visenv.makers import env_maker, make_policy
from visenv.registration import load
from visenv.terminal import printable, printable_lines, rich_text
from visenv.types import Sampling

if TYPE_CHECKING:
    from visenv.curation.lines import InputRows
    from visenv.curation.step import CurationStep, StepReport
    from visenv.policy import Policy

_SERVER = ("base_url", "key_variable", "timeout", "retries", "concurrency")
"""Options of a policy that define the address of its server and how requests are retried."""

Rows = Annotated[Path, Positional, arg(metavar="ROWS")]
Pairs = Annotated[Path, Positional, arg(metavar="PAIRS")]
Episodes = Annotated[Path, Positional, arg(metavar="EPISODES")]


@dataclass(frozen=True, kw_only=True)
class CurationCommand:
    """Holds the options of all steps."""

    out: Path
    """File for the kept rows; the journal and the summary of the step are written to the same
    folder.
    """

    def _work(self, step: CurationStep, lines: InputRows, concurrency: int = 64) -> None:
        """Run the step with a progress bar, and print the number of rows by result."""
        from visenv.cli.failures import check_not_all_failed
        from visenv.cli.tables import progress

        try:
            with progress("rows", len(lines)) as advance:
                account = step.run(lines, self.out, concurrency, advance)
        finally:
            step.close()
        _print(account, step.errors, self.out)
        for note in step.notes():
            print(printable_lines(note))
        reasons = (f"{reason}: {step.errors.get(reason, '')}" for reason in account.failed)
        failed = sum(account.failed.values())
        check_not_all_failed("rows failed", account.lines, failed, next(reasons, ""))


@dataclass(frozen=True, kw_only=True)
class EnvStepCommand(CurationCommand):
    """Holds the options of steps that process an environment's samples."""

    env: EnvName
    """Id (visenv/ may be omitted), module:Id or module:Class."""
    data: DataName = None
    """Data set, for example textvqa:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    samples: int | None = None
    """Number of samples; by default all rows of a data set. Required for procedural data."""
    first: int = 0
    """The first row, or the first seed of procedural data."""
    places: Path | None = None
    """A file of rows that list the samples, instead of --samples, as questions and difficulty write
    it.
    """
    concurrency: int = 16
    """Number of samples that are processed at the same time."""

    def _places(self) -> InputRows:
        from visenv.curation.places import place_lines

        if self.places is not None:
            if self.samples is not None or self.first:
                raise ConfigurationError("--places lists the samples; omit --samples and --first.")
            return read(self.places)
        check_at_least(0, first=self.first)
        check_at_least(1, samples=self.samples)
        return place_lines(self._source(), self.samples, self.first)

    def _source(self) -> Any:
        env = self._make_env()()
        env.close()
        base: Any = env.unwrapped
        return base.source

    def _make_env(self) -> Any:
        return env_maker(self.env, self.option, self.data)

    def _env_label(self) -> str:
        return " ".join([self.env, self.data or "", *self.option]).strip()


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """Holds the options of steps that use a policy."""

    policy: PolicyName = "openai"
    """The policy that answers: a name (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy, for example model=NAME; may be given several times."""
    temperature: float = 1.0
    """Sampling temperature."""

    def _open_policy(self) -> closing[Policy[Any]]:
        return closing(make_policy(self.policy, self.policy_option))

    def _policy_label(self) -> str:
        """Return the policy's name in the journal, without options that cannot change a reply."""
        own = [each for each in self.policy_option if each.partition("=")[0] not in _SERVER]
        return " ".join([self.policy, *sorted(own)])

    def _sampling(self, max_tokens: int) -> Sampling:
        check_at_least(1, max_tokens=max_tokens)
        check_at_least(0, temperature=self.temperature)
        return Sampling(self.temperature, max_tokens)


@dataclass(frozen=True, kw_only=True)
class WriterStepCommand(PolicyOptions, CurationCommand):
    """Holds the options of steps that write text with a policy."""

    rows: Rows
    """File of rows: id, question, images, response."""
    attempts: int = 3
    """Maximum number of replies to one row."""
    max_tokens: int = 4096
    """Maximum number of tokens in a reply."""
    concurrency: int = 64
    """Number of rows that are processed at the same time."""
    seed: int = 0
    """Seed of the random choices."""

    def _write(self, name: str, *arguments: Any, **options: Any) -> None:
        """Run the step with this name; its first argument is the writer."""
        sampling = self._sampling(self.max_tokens)
        with self._open_policy() as policy:
            label = self._policy_label()
            writer = part("writer")(policy, sampling, self.attempts, label=label)
            step = part(name)(writer, *arguments, seed=self.seed, **options)
            self._work(step, read(self.rows), self.concurrency)


def part(name: str) -> Any:
    """Return the class of a curation step by name."""
    return load("curation step", name)


def read(path: Path) -> InputRows:
    """Return the rows of a file."""
    from visenv.curation.lines import JsonLines

    return JsonLines(path)


def _print(account: StepReport, errors: Mapping[str, str], out: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table("", "rows", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[1].justify = "right"
    table.add_row("kept", str(account.kept))
    for title, counts in (("dropped", account.dropped), ("failed", account.failed)):
        for reason, count in counts.items():
            table.add_row(rich_text(f"{title}: {reason}"), str(count))
    table.add_row("all", str(account.lines))
    Console().print(table)
    for reason, error in errors.items():
        print(printable(f"failed: {reason}, for example: {error}"))
    print(printable(f"{account.rows} rows in {out}"))
