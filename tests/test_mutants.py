"""Tests the search for mutants, and that tests kill a mutant but not its absence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import mutants
from tests.mutations import Mutant, find_mutants

SOURCE = b'''"""Docstring with 1 == 1."""
def area(width: int = 3, *, whole: bool = True) -> "1 + 1":
    # \xc3\xa9 takes two bytes
    if not whole and (width) < 2.5:
        return None
    return f"{width + 1}", width * 2
'''


def changed(kind: str) -> list[str]:
    """Return the changed lines of all mutants of a kind."""
    found = []
    for mutant in find_mutants("m.py", SOURCE):
        if mutant.kind == kind:
            lines = mutant.apply(SOURCE).decode().splitlines()
            found.append(lines[mutant.line - 1].strip())
    return sorted(found)


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("comparison", ["if not whole and (width) <= 2.5:"]),
        ("arithmetic", ['return f"{width + 1}", width + 2']),
        (
            "constant",
            [
                'def area(width: int = 3, *, whole: bool = False) -> "1 + 1":',
                'def area(width: int = 4, *, whole: bool = True) -> "1 + 1":',
                "if not whole and (width) < 3.5:",
                'return f"{width + 1}", width * 3',
            ],
        ),
        ("return value", ["return None"]),
        (
            "negation",
            ["if (not (not whole and (width) < 2.5)):", "if (whole) and (width) < 2.5:"],
        ),
    ],
)
def test_mutants_change_code_but_no_annotation_docstring_or_text(
    kind: str, lines: list[str]
) -> None:
    assert changed(kind) == lines


def test_tests_of_the_mirrored_folder_run_with_those_of_the_file_first() -> None:
    tracked = ["tests/envs/x/test_a.py", "tests/envs/x/test_b.py", "tests/envs/x/y/test_c.py"]
    first = "tests/envs/x/test_b.py"
    assert mutants.test_files("envs/x/b.py", tracked) == [first, tracked[0], tracked[2]]
    assert mutants.test_files("envs/x/y/z/deep.py", tracked) == ["tests/envs/x/y/test_c.py"]
    assert mutants.test_files("policies/b.py", tracked) == []


def test_choice_has_as_many_mutants_of_each_file_and_does_not_depend_on_other_files() -> None:
    tracked = [path for path in mutants.tracked_files() if path.endswith(".py")]
    chosen = mutants.choose(tracked, files=4, mutants=12, seed=0)
    by_file = {mutant.path: 0 for mutant in chosen}
    for mutant in chosen:
        by_file[mutant.path] += 1
    assert list(by_file.values()) == [3] * 4
    fewer = [path for path in tracked if path in by_file or path.startswith("tests/")]
    assert mutants.choose(fewer, files=4, mutants=12, seed=0) == chosen


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder with a module of one function, and a test that checks it at 2."""
    (tmp_path / "double.py").write_text("def double(x):\n    return x * 2\n")
    (tmp_path / "test_double.py").write_text(
        "from double import double\n\ndef test_two():\n    assert double(2) == 4\n"
    )
    (tmp_path / "test_broken.py").write_text("def test_broken():\n    assert False\n")
    return tmp_path


def mutant_of(copy: Path, kind: str) -> Mutant:
    found = find_mutants("double.py", (copy / "double.py").read_bytes())
    return next(mutant for mutant in found if mutant.kind == kind)


@pytest.mark.slow
def test_mutant_is_killed_by_a_test_that_passes_without_it(copy: Path) -> None:
    before = (copy / "double.py").read_text()
    constant = mutants.try_mutant(mutant_of(copy, "constant"), copy, ["test_double.py"], 60)
    assert constant.killed_by == "test_double.py::test_two"
    # 2 + 2 is 4, too
    same = mutants.try_mutant(mutant_of(copy, "arithmetic"), copy, ["test_double.py"], 60)
    assert (same.killed_by, same.limited) == (None, False)
    broken = mutants.try_mutant(mutant_of(copy, "constant"), copy, ["test_broken.py"], 60)
    assert broken.killed_by is None
    assert (copy / "double.py").read_text() == before


@pytest.mark.slow
def test_tests_that_never_end_are_stopped_and_kill_nothing(copy: Path) -> None:
    (copy / "test_double.py").write_text("def test_loop():\n    while True: pass\n")
    outcome = mutants.try_mutant(mutant_of(copy, "constant"), copy, ["test_double.py"], 2)
    assert (outcome.killed_by, outcome.limited) == (None, True)
