"""Tests the table of `make test`: every stage that ran, its minutes and its result."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.stages import table

HERE = Path(__file__).parent

MAKEFILE = f"""
one:
\t@echo ran one
two three:
\t@sleep 0.2
fails:
\t@exit 3
hangs:
\t@echo hangs; exec sleep 60
pytest:
\t@{sys.executable} -m pytest -q tests
"""


def start(folder: Path, *stages: str) -> subprocess.Popen[str]:
    (folder / "Makefile").write_text(MAKEFILE)
    return subprocess.Popen(
        [sys.executable, HERE / "stages.py", "make", *stages],
        cwd=folder,
        env={**os.environ, "CI": "", "PYTEST_ADDOPTS": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=_accept_interrupts,  # noqa: PLW1509 - these tests start no threads
    )


def _accept_interrupts() -> None:
    """Restore the default action for Ctrl-C, which background jobs of a shell ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def rows(output: str) -> list[tuple[str, str]]:
    """Return the stages and their results, without the minutes."""
    found = re.findall(r"^\| ( *\S+) +\| +\d+\.\d \| (\w*) +\|$", output, re.MULTILINE)
    assert found[-1] == ("all", "")
    return found[:-1]


def test_stages_run_in_order_and_are_in_the_table(tmp_path: Path) -> None:
    process = start(tmp_path, "one", "both=-j2 two three")
    output, _ = process.communicate()
    assert process.returncode == 0
    assert output.index("ran one") < output.index("| stage")
    assert rows(output) == [("one", "passed"), ("both", "passed")]


def test_stage_that_fails_ends_the_run_and_the_table(tmp_path: Path) -> None:
    process = start(tmp_path, "one", "fails", "two")
    output, _ = process.communicate()
    assert process.returncode == 2  # make's own status when a recipe failed
    assert rows(output) == [("one", "passed"), ("fails", "FAILED")]


def test_stage_that_is_interrupted_ends_the_table(tmp_path: Path) -> None:
    process = start(tmp_path, "one", "hangs", "two")
    assert process.stdout is not None
    while process.stdout.readline() != "hangs\n":
        pass
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C signals all processes of the terminal
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert [row for row in rows(output) if row[0] != "one"] == [("hangs", "stopped")]


def test_stage_of_tests_has_a_row_for_each_folder(tmp_path: Path) -> None:
    for folder, seconds in (("tests", 0.0), ("tests/quick/deep", 0.1), ("tests/slow", 0.5)):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        code = f"import time\ndef test_it(): time.sleep({seconds})\n"
        (tmp_path / folder / f"test_{Path(folder).name}.py").write_text(code)
    for module in ("conftest.py", "listeners.py", "packages.py", "second_user.py", "security.py"):
        shutil.copy(HERE / module, tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = component(*names): x\n")
    process = start(tmp_path, "one", "pytest", "two")
    output, _ = process.communicate()
    assert process.returncode == 0, output
    folders = [("  tests/slow", ""), ("  tests/quick", ""), ("  tests", "")]
    passed = [(name, "passed") for name in ("one", "pytest", "two")]
    assert rows(output) == [*passed[:2], *folders, passed[2]]


def test_table_counts_each_stage_once() -> None:
    shown = table([("lint", 30.0, "passed"), ("pytest", 90.0, "FAILED"), ("  tests/a", 120.0, "")])
    minutes = [line.split("|")[2].strip() for line in shown.splitlines()[2:]]
    assert minutes == ["0.5", "1.5", "2.0", "2.0"]


def test_stages_of_make_test_are_those_of_the_table_on_the_contributing_page() -> None:
    root = HERE.parent
    (command,) = re.findall(r"tests/stages\.py \S+ (.*)", (root / "Makefile").read_text())
    stages = [stage.partition("=")[0] for stage in shlex.split(command)]
    page = (root / "CONTRIBUTING.md").read_text()
    section = page.partition("| stage")[2].partition("\n\n")[0]
    listed = [line.split("|")[1] for line in section.splitlines()[2:]]
    assert [line.strip() for line in listed if not line.startswith("  ")] == [*stages, "all"]
