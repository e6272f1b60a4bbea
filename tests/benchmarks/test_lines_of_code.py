"""Tests the count of lines of code: which lines count as code, by hand, and in which files."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.programs import load_program

SOURCE = '''"""A module
of three lines.
"""

# A comment.
import os  # code 1


def join(*parts: str) -> str:  # code 2
    """A docstring."""
    text = """a string    # code 3
    # that is no comment  # code 4

    """  # code 5 and 6: the blank line is part of the string
    return os.sep.join(  # code 7
        parts,  # code 8

        # A comment between brackets.
    )  # code 9


NAME = 1  # code 10
"""What NAME is."""
'''


@pytest.fixture(scope="module")
def lines() -> ModuleType:
    return load_program("benchmarks/lines_of_code.py")


def test_code_is_what_is_neither_blank_nor_comment_nor_docstring(lines: ModuleType) -> None:
    assert lines.count_code(SOURCE) == 10
    assert lines.count_code("") == lines.count_code("# nothing\n\n") == 0


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("visenv/env.py", "visenv"),
        ("visenv/data/scenes/world.py", "visenv/data"),
        ("envs/__init__.py", "envs"),
        ("setup.py", "(root)"),
    ],
)
def test_file_is_counted_in_its_package(lines: ModuleType, path: str, package: str) -> None:
    assert lines.package_of(path) == package


def test_revision_and_working_tree_are_counted(
    lines: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=any", "-c", "user.email=any@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    monkeypatch.setattr(lines, "ROOT", tmp_path)
    (tmp_path / "envs").mkdir()
    (tmp_path / "visenv").mkdir()
    (tmp_path / "visenv/envs").symlink_to("../envs")
    (tmp_path / "envs/one.py").write_text("a = 1\nb = 2\n")
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "envs/one.py").write_text("a = 1\n")
    (tmp_path / "envs/new.py").write_text("c = 3\nd = 4\ne = 5\n")
    (tmp_path / "envs/ignored.py").write_text("f = 6\n")
    assert lines.count(lines.files_of("HEAD")) == {"envs": 2}
    assert lines.count(lines.files_here()) == {"envs": 4}


def test_report_keeps_the_tests_apart(lines: ModuleType) -> None:
    before = Counter({"visenv": 100, "visenv/data": 1000, "examples": 5, "tests/visenv": 7})
    now = Counter({"visenv": 90, "envs/arm": 400, "examples": 6, "tests/visenv": 9})
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:5]]
        for cells in (row.split("|") for row in lines.report(before, now, "abc").splitlines())
    }
    assert rows["lines of code"] == ["abc", "here", "change"]
    assert rows["visenv/data"] == ["1,000", "0", "-1,000"]
    assert rows["visenv, envs, policies, algos"] == ["1,100", "490", "-610"]
    assert rows["all but tests"] == ["1,105", "496", "-609"]
    assert rows["tests"] == ["7", "9", "+2"]
