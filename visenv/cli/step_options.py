"""Defines the options of `visenv data` from which fields of a step are filled.

| field of the step | options of the command |
|---|---|
| `make_env` | the environment, and the samples that are the rows of the step |
| `policy` | the policy and its options |
| `sampling` | temperature and length, with the defaults of the field |
| `writer` | a policy, its sampling, and the number of attempts |
| `scorer` | the scorer |
| `source` | the data set, whose rows are the rows of the step |
| `lines`, `images` | the input file, and the folder of images beside it |
| `out`, `folder` | the output file, and its folder |
| `label` | none: the names of policy, environment and data set, for the journal |

A step without environment and data set reads a file of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import override
from tyro.conf import Positional, arg

from visenv.cli.arguments import DataName, EnvName, PolicyName, Settings, check_at_least
from visenv.errors import ConfigurationError
from visenv.makers import env_maker, make_policy
from visenv.types import Sampling

if TYPE_CHECKING:
    from visenv.curation.lines import InputRows
    from visenv.curation.step import CurationStep

FILLED = {
    *("make_env", "policy", "sampling", "writer", "scorer", "source"),
    *("lines", "images", "out", "folder", "label"),
}
"""The fields of a step that are no options."""

_SERVER = ("base_url", "key_variable", "timeout", "retries", "concurrency")
"""Options of a policy that define the address of its server and how requests are retried."""

Found = dict[str, Callable[[], Any]]
"""Functions that make the values of fields."""


@dataclass(frozen=True, kw_only=True)
class OptionGroup:
    """Is the base class of groups of options."""

    @classmethod
    def defaults(cls, step: type[CurationStep]) -> Mapping[str, Any]:
        """Return the defaults of options that depend on the step."""
        return {}

    def fill(self, found: Found, stack: ExitStack) -> None:
        """Add the functions that make the values of fields.

        Args:
            found: The functions, by the name of the field; those of earlier groups are there.
            stack: Closes the values after the run.
        """
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class EnvOptions(OptionGroup):
    """Holds the environment, and the samples to process."""

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

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        label = " ".join([self.env, self.data or "", *self.option]).strip()
        found["make_env"] = lambda: env_maker(self.env, self.option, self.data)
        found["lines"] = lambda: self._places(found["make_env"])
        found["label"] = lambda: label

    def _places(self, make_env: Callable[[], Callable[[], Any]]) -> InputRows:
        from visenv.curation.places import place_lines, source_of

        if self.places is not None:
            if self.samples is not None or self.first:
                raise ConfigurationError("--places lists the samples; omit --samples and --first.")
            return _read(self.places)
        check_at_least(0, first=self.first)
        check_at_least(1, samples=self.samples)
        return place_lines(source_of(make_env()), self.samples, self.first)


@dataclass(frozen=True, kw_only=True)
class TriesOptions(OptionGroup):
    """Holds the number of times that each sample is processed."""

    tries: int = 1
    """Number of times that each sample is processed, with different seeds."""

    @classmethod
    @override
    def defaults(cls, step: type[CurationStep]) -> Mapping[str, Any]:
        return {"tries": step.default_tries}

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        from visenv.curation.places import members

        check_at_least(1, tries=self.tries)
        lines = found["lines"]
        found["lines"] = lambda: members(lines(), self.tries)


@dataclass(frozen=True, kw_only=True)
class SourceOptions(OptionGroup):
    """Holds the data set whose rows are processed."""

    data: Annotated[str, Positional, arg(metavar="NAME:FOLDER")]
    """Data set, for example mm_ifeval:<folder>."""

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        from visenv.curation.places import row_lines
        from visenv.data.open import open_data

        source = open_data(self.data)
        found["source"] = lambda: source
        found["lines"] = lambda: row_lines(source)
        found["label"] = lambda: self.data


@dataclass(frozen=True, kw_only=True)
class InputOptions(OptionGroup):
    """Holds the input file."""

    rows: Annotated[Path, Positional, arg(metavar="ROWS")]
    """File of rows: of questions, pairs or episodes, as the step before wrote it."""

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        found["lines"] = lambda: _read(self.rows)
        found["images"] = lambda: self.rows.parent / "images"


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(OptionGroup):
    """Holds the policy."""

    policy: PolicyName = "openai"
    """The policy that answers: a name (visenv list), or module:Class."""
    policy_option: Settings = field(default_factory=list)
    """An argument of the policy, for example model=NAME; may be given several times."""

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        policy = make_policy(self.policy, self.policy_option)
        stack.callback(policy.close)
        place = found.get("label")
        found["policy"] = lambda: policy
        label = self._label()
        found["label"] = lambda: label if place is None else f"{label} on {place()}"

    def _label(self) -> str:
        """Return the policy's name in the journal, without options that cannot change a reply."""
        own = [text for text in self.policy_option if text.partition("=")[0] not in _SERVER]
        return " ".join([self.policy, *sorted(own)])


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(OptionGroup):
    """Holds the sampling parameters of the policy."""

    temperature: float = 1.0
    """Sampling temperature."""
    max_tokens: int = 4096
    """Maximum number of tokens in a reply."""

    @classmethod
    @override
    def defaults(cls, step: type[CurationStep]) -> Mapping[str, Any]:
        given = [one.default for one in fields(step) if one.name == "sampling"]  # type: ignore[arg-type]
        if not given or not isinstance(given[0], Sampling):
            return {}
        return {"temperature": given[0].temperature, "max_tokens": given[0].max_tokens}

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        check_at_least(1, max_tokens=self.max_tokens)
        check_at_least(0, temperature=self.temperature)
        found["sampling"] = lambda: Sampling(self.temperature, self.max_tokens)


@dataclass(frozen=True, kw_only=True)
class WriterOptions(OptionGroup):
    """Holds the attempts of a writer."""

    attempts: int = 3
    """Maximum number of replies to one row."""

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        from visenv.curation.writer import Writer

        found["writer"] = lambda: Writer(
            found["policy"](), found["sampling"](), self.attempts, label=found["label"]()
        )


@dataclass(frozen=True, kw_only=True)
class ScorerOptions(OptionGroup):
    """Holds the scorer."""

    scorer: str
    """The scorer, for example openai:my-model?base_url=http://localhost:8000/v1."""

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        from visenv.scorers import Scorer

        found["scorer"] = lambda: Scorer.parse(self.scorer)


@dataclass(frozen=True, kw_only=True)
class OutputOptions(OptionGroup):
    """Holds the output file."""

    out: Path
    """File for the kept rows; the journal and the summary of the step are written to the same
    folder.
    """

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        found["out"] = lambda: self.out
        found["folder"] = lambda: self.out.parent
        found["concurrency"] = lambda: 64


@dataclass(frozen=True, kw_only=True)
class ConcurrencyOptions(OptionGroup):
    """Holds the number of rows that are processed at the same time."""

    concurrency: int = 16
    """Number of rows that are processed at the same time."""

    @classmethod
    @override
    def defaults(cls, step: type[CurationStep]) -> Mapping[str, Any]:
        return {"concurrency": step.concurrency}

    @override
    def fill(self, found: Found, stack: ExitStack) -> None:
        found["concurrency"] = lambda: self.concurrency


def groups_of(step: type[CurationStep]) -> list[type[OptionGroup]]:
    """Return the groups of options that a step needs, in the order in which they are filled."""
    from visenv.curation.step import CurationStep

    names = {one.name for one in fields(step)}  # type: ignore[arg-type]
    groups: list[type[OptionGroup]] = []
    if "make_env" in names:
        groups += [EnvOptions, *([TriesOptions] if step.default_tries else [])]
    elif "source" in names - {*step.hidden}:
        groups.append(SourceOptions)
    elif step.rows is CurationStep.rows:
        groups.append(InputOptions)
    if names & {"sampling", "writer"}:
        groups.append(SamplingOptions)
    if names & {"policy", "writer"}:
        groups.append(PolicyOptions)
    if "writer" in names:
        groups.append(WriterOptions)
    if "scorer" in names:
        groups.append(ScorerOptions)
    groups.append(OutputOptions)
    if names & {"make_env", "policy", "writer", "scorer"}:
        groups.append(ConcurrencyOptions)
    return groups


def _read(path: Path) -> InputRows:
    from visenv.curation.lines import JsonLines

    return JsonLines(path)
