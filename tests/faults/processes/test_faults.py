"""Tests that faults of processes end or interrupt a run only as `catalog.py` says."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.processes.catalog import faults
from tests.programs import ROOT, run_python

pytestmark = [pytest.mark.slow, pytest.mark.component("torch")]

FEW = [
    "a step raises, inline",
    "a step kills all workers, processes",
    "SIGHUP twice (learn), inline",
    "stdout: pipe, stderr: file, inline",
    "the clock is set forward by a day, and then back by an hour, inline",
]
"""A fault of each kind."""

KINDS = sorted({fault.kind for fault in faults().values()})


def _make(labels: list[str], environment: dict[str, str] | None = None) -> None:
    """Make faults happen in another process, whose forks have no threads of this one."""
    done = run_python("-m", "tests.faults.processes.table", *labels, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{len(labels)} faults; all as expected\n"), done.stdout
    if path := os.environ.get("VISENV_FAULTS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(done.stdout + "\n")


def test_catalog_has_many_faults_and_a_few_of_each_kind() -> None:
    every = faults()
    assert len(every) >= 40
    assert {every[label].kind for label in FEW} == set(KINDS)


def test_page_of_faults_has_the_numbers_of_the_catalog() -> None:
    page = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    every = faults().values()
    assert f"causes {len(every)} faults" in page
    for (kind, outcome), count in Counter((each.kind, each.outcome) for each in every).items():
        assert f"| {kind} | {count} | {outcome} |" in page


@pytest.mark.timeout(900)
def test_fault_of_each_kind_has_the_expected_outcome() -> None:
    _make(FEW)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_faults_have_the_expected_outcome(kind: str) -> None:
    _make([label for label, fault in faults().items() if fault.kind == kind])


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_clock_of_all_libraries_is_set_by_libfaketime(tmp_path: Path) -> None:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    library = Path(os.environ["VISENV_FAKETIME"]) if "VISENV_FAKETIME" in os.environ else library
    if library is None:
        pytest.skip("libfaketime is missing: install the package faketime of Debian")
    _make(
        [label for label, fault in faults().items() if fault.kind == "clock"],
        {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "clock"),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        },
    )
