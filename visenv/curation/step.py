"""A step of a data pipeline: rows in, an outcome for each, kept rows out, every row accounted for.

A subclass says what becomes of one row; `CurationStep.run` does the rest::

    class Short(Step):
        name = "short"

        async def decide(self, row: Row) -> Outcome:
            return kept(row) if len(row["question"]) < 80 else dropped("long question")

    account = Short().run(JsonLines("rows.jsonl"), Path("short.jsonl"))

It writes ``short.jsonl`` (the kept rows, in the order of the input), ``short.journal.jsonl`` (the
outcome of every row) and ``short.summary.json`` (the counts). A run that was killed goes on where
it was when it is started again, and ends with the same files as one that was not.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from visenv.background import run_here
from visenv.curation.journal import CurationJournal, RowOutcome, failed
from visenv.curation.lines import InputRow, InputRows, JsonLines, Row, write_lines
from visenv.errors import ConfigurationError, DataError, PolicyError, ServiceError

_FAILURES: dict[type[Exception], str] = {
    DataError: "cannot be read",
    PolicyError: "no reply",
    ServiceError: "a service failed",
}


class StepReport(NamedTuple):
    """Counts what became of all rows; the counts add up to `lines`.

    Attributes:
        lines: Rows of the input.
        kept: How many of them were kept.
        dropped: How many were dropped, by reason.
        failed: How many failed, by reason.
        rows: Rows written: a kept row may give several, or none.
    """

    lines: int
    kept: int
    dropped: dict[str, int]
    failed: dict[str, int]
    rows: int


class CurationStep:
    """Base class of steps.

    Attributes:
        name: What the journal calls it.
        in_order: Whether an outcome depends on the rows before; they are then taken one by one.
    """

    name: ClassVar[str]
    in_order: ClassVar[bool] = False

    async def decide(self, row: Row) -> RowOutcome:
        """Decide on a row.

        Raises:
            DataError: If the row cannot be used, or an image of it not be read: it then failed.
            PolicyError: If a model gave no reply: it then failed.
            ServiceError: If a service gave out: it then failed.
        """
        raise NotImplementedError

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that decide outcomes, JSON-like: a run goes on only with the same."""
        return {}

    def begin(self) -> None:
        """Prepare a run; a step that depends on the order of rows forgets the last run."""

    def remember(self, row: Row, outcome: RowOutcome) -> None:
        """Take note of a row that was finished before; a step that goes by order may have to."""

    def notes(self) -> list[str]:
        """Return remarks on the whole run, after its last row, for example that rows are missing.

        `visenv data` prints them.
        """
        return []

    def close(self) -> None:
        """Release what the step holds."""

    def run(
        self,
        lines: InputRows,
        out: Path,
        concurrency: int = 64,
        on_line: Callable[[], None] | None = None,
    ) -> StepReport:
        """Work on every row that is not finished, and write what is kept.

        Args:
            lines: The rows.
            out: The file of kept rows; journal and summary are written beside it.
            concurrency: Most rows in work; 1 where the order counts.
            on_line: Called once for each row (progress bars).

        Returns:
            What became of all rows.

        Raises:
            ConfigurationError: If the journal was begun with other settings, or `out` is the input.
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
            return _finish(lines, journal, out)
        finally:
            journal.close()


def journal_path(out: Path) -> Path:
    """Return the path of the journal of the step that writes `out`."""
    return out.with_name(f"{out.stem}.journal.jsonl")


def seed_of(*parts: int | str) -> int:
    """Return a seed of 32 bits that depends on `parts`, ids among them, and on nothing else."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4])


class _Work:
    """Goes through the rows, some at a time."""

    def __init__(
        self, step: CurationStep, journal: CurationJournal, on_line: Callable[[], None]
    ) -> None:
        self._step = step
        self._journal = journal
        self._on_line = on_line
        # Where the order counts: an outcome that stands before one of an earlier row is older than
        # what it depends on. The files tell, so a kill does not make a run forget it.
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
        """Return whether an earlier run decided on the row; the step then remembers that.

        Not where the order counts and a row before it was decided on later, nor where the step
        cannot read the row any more.
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
            return await self._step.decide(line.row)
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
        """Note that the row has its outcome."""
        if self._step.in_order:
            self._reached = max(self._reached, self._journal.place(line))
        self._on_line()


def _chained(lines: InputRows) -> Iterator[InputRow]:
    """Return the lines, each with a digest of all so far: a missing line changes the later ones."""
    digest = ""
    for line in lines:
        digest = hashlib.sha256(f"{digest} {line.digest}".encode()).hexdigest()[:16]
        yield line._replace(digest=digest)


# ---------------------------------------------------------------------------- the end


def _finish(lines: InputRows, journal: CurationJournal, out: Path) -> StepReport:
    """Write the kept rows in the order of the input, and the counts."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("kept", "dropped", "failed")}

    def rows() -> Iterator[Row]:
        for line in lines:
            outcome = journal.outcome(line)
            counts[outcome.status][outcome.reason] += 1
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
    out.with_name(f"{out.stem}.summary.json").write_text(summary, encoding="utf-8")
    return account
