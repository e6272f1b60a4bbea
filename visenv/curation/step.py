"""Defines a step of a data pipeline, which reads rows and decides the outcome of each one.

A subclass decides on one row; `CurationStep.run` does the rest::

    class Short(CurationStep):
        name = "short"

        async def decide(self, row: Row) -> RowOutcome:
            return kept(row) if len(row["question"]) < 80 else dropped("long question")

    report = Short().run(JsonLines("rows.jsonl"), Path("short.jsonl"))

A step of `visenv data` is also a dataclass. Its fields, each with a docstring below it, are the
options of the command (`visenv.cli.data`).

The run writes ``short.jsonl`` (the kept rows, in the order of the input), ``short.journal.jsonl``
(the outcome of every row) and ``short.summary.json`` (the counts). If a run was killed, the next
run continues it, and the files are the same as those of an uninterrupted run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from visenv.background import run_here
from visenv.curation.journal import CurationJournal, RowOutcome, failed
from visenv.curation.lines import InputRow, InputRows, JsonLines, Row, write_lines
from visenv.errors import ConfigurationError, DataError, PolicyError, ServiceError
from visenv.files import write_text

_SHOWN = 500
"""Maximum length of an error in `CurationStep.errors`; the journal has all of it."""

_FAILURES: dict[type[Exception], str] = {
    DataError: "cannot be read",
    PolicyError: "no reply",
    ServiceError: "a service failed",
}


class StepReport(NamedTuple):
    """Counts the outcomes of all rows; the counts add up to `lines`.

    Attributes:
        lines: Number of input rows.
        kept: Number of kept rows.
        dropped: Number of dropped rows, by reason.
        failed: Number of failed rows, by reason.
        rows: Number of output rows; a kept row may give several, or none.
    """

    lines: int
    kept: int
    dropped: dict[str, int]
    failed: dict[str, int]
    rows: int


class CurationStep:
    """Is the base class of steps.

    Attributes:
        name: Name of the step in the journal.
        in_order: Whether an outcome depends on earlier rows; rows are then processed one by one.
        hidden: Fields of a dataclass that are no options of `visenv data`.
        default_tries: The default number of times that `visenv data` processes each sample; 0 if
            this is no option.
        concurrency: The default number of rows that `visenv data` processes at the same time.
        errors: The error of the first row that failed in the last run, by reason.
    """

    name: ClassVar[str]
    in_order: ClassVar[bool] = False
    hidden: ClassVar[tuple[str, ...]] = ()
    default_tries: ClassVar[int] = 0
    concurrency: ClassVar[int] = 16
    errors: Mapping[str, str] = MappingProxyType({})

    async def decide(self, row: Row) -> RowOutcome:
        """Decide on a row.

        Raises:
            DataError: If the row or one of its images cannot be used; the row then failed.
            PolicyError: If a model gave no reply; the row then failed.
            ServiceError: If a service failed; the row then failed.
        """
        raise NotImplementedError

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that affect outcomes, JSON-like.

        A run can only continue with the same ones.
        """
        return {}

    def rows(self) -> InputRows | None:
        """Return the input rows of a step of `visenv data` that reads no file and no samples."""
        return None

    def begin(self) -> None:
        """Prepare a run; a step that depends on the order of rows resets its state."""

    def remember(self, row: Row, outcome: RowOutcome) -> None:
        """Update the state with a row that an earlier run finished.

        Only steps with order need this.
        """

    def notes(self) -> list[str]:
        """Return notes on the whole run, after its last row, for example about missing rows.

        `visenv data` prints these notes.
        """
        return []

    def close(self) -> None:
        """Release the resources of the step."""

    def run(
        self,
        lines: InputRows,
        out: Path,
        concurrency: int = 64,
        on_line: Callable[[], None] | None = None,
    ) -> StepReport:
        """Process every row that is not finished, and write the kept rows.

        Args:
            lines: The rows.
            out: The file of kept rows; journal and summary are written to the same folder.
            concurrency: Maximum number of rows that are processed at the same time; steps with
                order use 1.
            on_line: Function that is called once for each row, for progress bars.

        Returns:
            The counts of all outcomes.

        Raises:
            ConfigurationError: If the journal has other settings, or `out` is the input.
            DataError: If the journal is damaged.
        """
        if concurrency < 1:
            raise ConfigurationError(f"concurrency must be at least 1, got {concurrency}.")
        if isinstance(lines, JsonLines) and lines.path.resolve() == out.resolve():
            raise ConfigurationError(f"{out} is both the input and the output; name another file.")
        journal = CurationJournal(journal_path(out), self.name, self.settings())
        try:
            self.begin()
            work = _Work(self, journal, on_line or (lambda: None))
            run_here(work.through(lines, 1 if self.in_order else concurrency))
            errors: dict[str, str] = {}
            self.errors = errors
            self.report = _finish(lines, journal, out, errors)
            return self.report
        finally:
            journal.close()


def journal_path(out: Path) -> Path:
    """Return the path of the journal of the step that writes `out`."""
    return out.with_name(f"{out.stem}.journal.jsonl")


def seed_of(*parts: int | str) -> int:
    """Return a seed of 32 bits that depends only on `parts`, which may contain ids."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4])


class _Work:
    """Processes the rows of a run, several at a time."""

    def __init__(
        self, step: CurationStep, journal: CurationJournal, on_line: Callable[[], None]
    ) -> None:
        self._step = step
        self._journal = journal
        self._on_line = on_line
        # For steps with order: an outcome whose place in the journal is before that of an earlier
        # row was decided without that row. The places are in the file, so that a killed run does
        # not lose them.
        self._reached = -1
        self._tasks: dict[asyncio.Task[RowOutcome], InputRow] = {}

    async def through(self, lines: InputRows, concurrency: int) -> None:
        try:
            for line in _chained(lines) if self._step.in_order else lines:
                while len(self._tasks) >= concurrency:
                    await self._collect()
                if self._recalls(line):
                    self._advance(line)
                else:
                    self._tasks[asyncio.create_task(self._decide(line))] = line
            while self._tasks:
                await self._collect()
        finally:
            for task in self._tasks:
                task.cancel()

    def _recalls(self, line: InputRow) -> bool:
        """Return whether an outcome of an earlier run is valid; if so, the step remembers it.

        An outcome is not valid if order matters and an earlier row was decided after it, or if the
        step can no longer read the row.
        """
        if not self._journal.finished(line) or self._journal.place(line) <= self._reached:
            return False
        try:
            self._step.remember(line.row, self._journal.outcome(line))
        except DataError:
            return False
        return True

    async def _decide(self, line: InputRow) -> RowOutcome:
        if line.problem:
            return failed("cannot be read", line.problem)
        try:
            outcome = await self._step.decide(line.row)
            return self._journal.with_own_images(outcome)
        except tuple(_FAILURES) as error:
            reason = next(word for kind, word in _FAILURES.items() if isinstance(error, kind))
            return failed(reason, f"{type(error).__name__}: {error}")

    async def _collect(self) -> None:
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            line = self._tasks.pop(task)
            self._journal.add(line, task.result(), self._reached)
            self._advance(line)

    def _advance(self, line: InputRow) -> None:
        """Record that the row has its outcome."""
        if self._step.in_order:
            self._reached = max(self._reached, self._journal.place(line))
        self._on_line()


def _chained(lines: InputRows) -> Iterator[InputRow]:
    """Yield the lines, each with a digest of all so far: a missing line changes later ones."""
    digest = ""
    for line in lines:
        digest = hashlib.sha256(f"{digest} {line.digest}".encode()).hexdigest()[:16]
        yield line._replace(digest=digest)


# ---------------------------------------------------------------------------- the end


def _finish(
    lines: InputRows, journal: CurationJournal, out: Path, errors: dict[str, str]
) -> StepReport:
    """Write the kept rows in the order of the input, and the counts; fill `errors`."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("kept", "dropped", "failed")}

    def rows() -> Iterator[Row]:
        for line in lines:
            outcome = journal.outcome(line)
            counts[outcome.status][outcome.reason] += 1
            if outcome.status == "failed":
                errors.setdefault(outcome.reason, str(outcome.detail.get("error", ""))[:_SHOWN])
            yield from outcome.rows

    written = write_lines(out, rows())
    account = StepReport(
        lines=sum(each.total() for each in counts.values()),
        kept=counts["kept"].total(),
        dropped=dict(counts["dropped"].most_common()),
        failed=dict(counts["failed"].most_common()),
        rows=written,
    )
    summary = json.dumps(account._asdict(), indent=2) + "\n"
    write_text(out.with_name(f"{out.stem}.summary.json"), summary)
    return account
