"""Reads the tables of SECURITY.md, and counts the tests of each claim for `make attack`."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

import pytest

SECURITY: Final = Path(__file__).parents[1] / "SECURITY.md"

_OUTCOMES = ("passed", "failed", "skipped")


def table(first: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this title."""
    lines = iter(SECURITY.read_text().splitlines())
    for line in lines:
        if line.startswith(f"| {first} |"):
            next(lines)  # the line between the titles and the rows
            break
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip(" `") for cell in line.strip("|").split("|")])
    return rows


def claims() -> list[str]:
    """Return the claims of SECURITY.md in their order."""
    return [row[0] for row in table("claim")]


class ClaimCounter:
    """Counts the tests of each claim, and prints a table if only the attacks run (`-m attack`).

    If no path was given, the run fails if a claim has no test that passed. Tests that ran in other
    processes are counted by the properties that are sent with their reports.

    Attributes:
        found: For each claim, the number of tests by outcome.
    """

    def __init__(self) -> None:
        self.found: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("attack"):
                item.user_properties.append(("attack", mark.args[0]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            for name, claim in report.user_properties:
                if name == "attack":
                    self.found[str(claim)][report.outcome] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if _prints_table(session.config) and self.without_test(session.config):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        if not _prints_table(config):
            return
        terminalreporter.section("claims of SECURITY.md")
        terminalreporter.line(f"{'passed':>6} {'failed':>6} {'skipped':>7}  claim")
        for claim in self._claims(config):
            passed, failed, skipped = (self._count(claim, outcome) for outcome in _OUTCOMES)
            line = f"{passed:>6} {failed:>6} {skipped:>7}  {claim}"
            terminalreporter.line(line, red=bool(failed) or not passed)
        for claim in self.without_test(config):
            terminalreporter.line(f"FAILED: no test passed for {claim!r}", red=True, bold=True)

    def without_test(self, config: pytest.Config) -> list[str]:
        """Return the claims for which no test passed, among those that this run should test."""
        return [claim for claim in self._claims(config) if not self._count(claim, "passed")]

    def _count(self, claim: str, outcome: str) -> int:
        return self.found.get(claim, Counter[str]())[outcome]

    def _claims(self, config: pytest.Config) -> list[str]:
        whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
        listed = [claim for claim in claims() if whole or claim in self.found]
        return listed + sorted(self.found.keys() - set(listed))


def _prints_table(config: pytest.Config) -> bool:
    is_worker = hasattr(config, "workerinput")  # of pytest-xdist: it has only a part of the files
    only_attacks = config.getoption("markexpr", "") == "attack"
    return only_attacks and not is_worker and not config.getoption("collectonly", False)
