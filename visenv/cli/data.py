"""Implements `visenv data STEP …`: creates training and benchmark data in steps (docs/data.md).

The steps are those of all manifests. A step is a subclass of `CurationStep` and a dataclass, whose
fields are the options of the command. Some fields are no options: the command makes their values
from options of its own (`visenv.cli.step_options`).
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from tyro.conf import Positional, UseAppendAction, arg

from visenv.cli.step_options import FILLED, OptionGroup, groups_of
from visenv.errors import ConfigurationError
from visenv.registration import known_names, load, title_of
from visenv.terminal import printable, printable_lines, rich_text

if TYPE_CHECKING:
    from visenv.curation.lines import InputRows
    from visenv.curation.step import CurationStep, StepReport


@dataclass(frozen=True)
class DataCommand:
    """Runs a step of curation.

    Attributes:
        step: The class of the step.
        options: The values of its options.
        groups: The further options of the command, from which other fields are filled.
    """

    step: type[CurationStep]
    options: Mapping[str, Any]
    groups: Sequence[OptionGroup]

    def run(self) -> None:
        """Run the step with a progress bar, and print the number of rows by result."""
        with ExitStack() as stack:
            found: dict[str, Any] = {}
            for group in self.groups:
                group.fill(found, stack)
            found.update({name: cache(make) for name, make in found.items()})
            wanted = [
                name
                for name in _names(self.step)
                if name in FILLED and name not in self.step.hidden
            ]
            if missing := [name for name in wanted if name not in found]:
                raise ConfigurationError(
                    f"The step {self.step.__name__} has the field {missing[0]!r}, which `visenv "
                    "data` cannot fill, because the step has no input or model for it."
                )
            step = self.step(**{name: found[name]() for name in wanted}, **self.options)
            stack.callback(step.close)
            lines = step.rows()
            if lines is None:
                lines = found["lines"]()
            _work(step, lines, found["out"](), found["concurrency"]())


def parse_step(words: Sequence[str]) -> DataCommand:
    """Return the step with its options parsed from `words`.

    Raises:
        SystemExit: After the help, or an error in the options.
        UnknownNameError: If there is no such step; suggests the nearest.
        ConfigurationError: If the step cannot be imported or is not one.
    """
    import tyro

    if not words or words[0] in ("-h", "--help"):
        print(_usage(), file=sys.stdout if words else sys.stderr)
        raise SystemExit(0 if words else 2)
    step = load_step(words[0])
    groups = groups_of(step)
    hidden = {*FILLED, *step.hidden}
    listed = [option for cls in groups for option in _options(cls)]
    listed += _options(step, hidden)
    names = [name for name, *_ in listed]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(
                f"The step {step.__name__} has the field {name!r}, which is an option that `visenv "
                "data` adds to the step; rename the field."
            )
    changed = {name: value for cls in groups for name, value in cls.defaults(step).items()}
    parsed: Any = tyro.cli(
        make_dataclass(
            "Options",
            [
                (name, kind, field(default=changed[name]) if name in changed else default)
                for name, kind, default in listed
            ],
            kw_only=True,
        ),
        prog=f"visenv data {words[0]}",
        description=_description(step),
        args=words[1:],
        config=(UseAppendAction,),
    )
    values = vars(parsed)
    return DataCommand(
        step,
        {name: values[name] for name in _names(step) if name not in hidden},
        [cls(**{name: values[name] for name in _names(cls)}) for cls in groups],
    )


def load_step(name: str) -> type[CurationStep]:
    """Return the class of a step.

    Raises:
        UnknownNameError: If there is no such step; suggests the nearest.
        ConfigurationError: If the step cannot be imported, or is not a dataclass that extends
            `CurationStep`.
    """
    from visenv.curation.step import CurationStep

    step = load("curation step", name)
    if not (isinstance(step, type) and issubclass(step, CurationStep) and is_dataclass(step)):
        raise ConfigurationError(
            f"{title_of('curation step', name)} must be a dataclass that extends CurationStep, got "
            f"{step!r:.80}."
        )
    return step


def _usage() -> str:
    """Return the list of all steps; a step that cannot be imported is listed with the reason."""
    lines = ["usage: visenv data STEP …", ""]
    names = known_names("curation step")
    for name in names:
        try:
            summary = " ".join(_description(load_step(name)).split("\n\n")[0].split())
        except ConfigurationError as error:
            summary = str(error)
        lines.append(f"  {name:{max(map(len, names))}}  {summary}")
    return "\n".join([*lines, "", "visenv data STEP --help lists the options of a step."])


def _names(cls: type[Any]) -> list[str]:
    return [one.name for one in fields(cls)]


def _options(cls: type[Any], hidden: Collection[str] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the type with the help, and the default of each option, as a new field."""
    hints, texts = get_type_hints(cls, include_extras=True), _help(cls)
    for one in fields(cls):
        if one.name in hidden:
            continue
        kind: Any = hints[one.name]
        kind = Annotated[kind, arg(help=texts.get(one.name))]
        if one.name == "data" and not issubclass(cls, OptionGroup):
            kind = Annotated[kind, Positional, arg(metavar="NAME:FOLDER")]
        if one.default is not MISSING:
            yield one.name, kind, field(default=one.default)
        elif one.default_factory is not MISSING:
            yield one.name, kind, field(default_factory=one.default_factory)
        else:
            yield one.name, kind, field()


def _help(cls: type[Any]) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of its base classes."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not is_dataclass(base):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for line, below in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                match below:
                    case ast.Expr(ast.Constant(str(text))):
                        texts[line.target.id] = " ".join(text.split())
    return texts


def _description(step: type[CurationStep]) -> str:
    """Return the docstring of a step without the parts about its arguments."""
    text = inspect.getdoc(step) or ""
    for part in ("Args:", "Attributes:", "Raises:"):
        text = text.partition(f"\n{part}")[0]
    return text.strip()


def _work(step: CurationStep, lines: InputRows, out: Path, concurrency: int) -> None:
    from visenv.cli.tables import check_not_all_failed, progress

    with progress("rows", len(lines)) as advance:
        account = step.run(lines, out, concurrency, advance)
    _print(account, step.errors, out)
    for note in step.notes():
        print(printable_lines(note))
    reasons = (f"{reason}: {step.errors.get(reason, '')}" for reason in account.failed)
    failed = sum(account.failed.values())
    check_not_all_failed("rows failed", account.lines, failed, next(reasons, ""))


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
