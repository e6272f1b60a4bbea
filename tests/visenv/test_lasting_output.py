"""Tests that a closed or full output loses lines, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT, run_python
from visenv.lasting_output import lasting_output

_PRINTS = """
import os, sys
from pathlib import Path
from visenv.lasting_output import lasting_output

with lasting_output():
    for number in range(4000):  # more than the buffers of a pipe hold
        print("a line of 20 letters", number)
        print("a line of 20 letters", number, file=sys.stderr)
    Path(sys.argv[1]).write_text(f"{number} {os.fstat(1).st_rdev == os.stat(os.devnull).st_rdev}")
"""
_REPORT = "cannot be written (%s). The run goes on, and its files are complete."


def _run(redirections: str, tmp_path: Path) -> tuple[int, str, str]:
    """Run the program in a shell; return its status, its file and the text that was caught."""
    done = tmp_path / "done"
    command = f'"{sys.executable}" -c "$CODE" "{done}" {redirections}'
    shell = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "CODE": _PRINTS},
    )  # fmt: skip
    return shell.returncode, done.read_text(), shell.stdout + shell.stderr


@pytest.mark.parametrize(
    ("redirections", "said"),
    [
        ("2>/dev/null | head -1; exit ${PIPESTATUS[0]}", ""),
        (">/dev/full", "Standard output " + _REPORT % "No space left on device"),
        ("2>/dev/full", "Standard error " + _REPORT % "No space left on device"),
        (">/dev/full 2>&1", ""),
        ("2>&1 | head -1; exit ${PIPESTATUS[0]}", ""),
        (">&-", "a line of 20 letters 3999"),
        ("2>&-", "a line of 20 letters 3999"),
    ],
)
def test_output_that_is_closed_or_full_ends_no_program(
    redirections: str, said: str, tmp_path: Path
) -> None:
    status, done, text = _run(redirections, tmp_path)
    assert status == 0
    assert done.startswith("3999")
    assert said in text


def test_closed_descriptor_is_not_given_to_another_file(tmp_path: Path) -> None:
    assert _run(">&-", tmp_path)[1] == "3999 True"


def test_lost_output_is_counted_when_writing_succeeds_again() -> None:
    code = """
import os, sys
from visenv.lasting_output import lasting_output

kept = os.dup(1)
with lasting_output():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    print("lost"); sys.stdout.flush()
    os.dup2(kept, 1)
    print("found"); sys.stdout.flush()
"""
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    lost = "visenv: 5 bytes of output were lost: No space left on device\n"
    assert done.stdout == f"{lost}found\n"


def test_streams_are_restored_and_replaced_streams_stay(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with lasting_output():
        assert (sys.stdout, sys.stderr) == before  # those of pytest
        print("captured")
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "captured\n"
