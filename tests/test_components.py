"""Tests the closing list of real components; in CI a whole run fails when one did not run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

SUITE = """
import pytest

@pytest.mark.component("torch")
def test_ran(): pass

@pytest.mark.component("torch", "trl")
def test_skipped_inside(): pytest.skip("no")

@pytest.mark.component("gone")
def test_needs_what_is_missing(): raise AssertionError("must be skipped")

@pytest.mark.soak
def test_long(): raise AssertionError("must be deselected")
"""


FEW = "[COMPONENTS.pop(name) for name in {*COMPONENTS} - {'torch', 'transformers', 'trl'}]\n"
"""Leaves out the components whose versions take long to find."""

MISSING = FEW + "COMPONENTS['gone'] = lambda: None\n"


def run(
    folder: Path, suite: str, *arguments: str, ci: bool, more: str = MISSING
) -> tuple[int, str]:
    (folder / "tests").mkdir()
    # The real conftest, by default with an additional component that is always missing.
    conftest = (HERE / "conftest.py").read_text()
    (folder / "tests/conftest.py").write_text(conftest + "\n" + more)
    # The conftest imports these modules.
    for module in ("listeners.py", "packages.py", "second_user.py", "security.py"):
        shutil.copy(HERE / module, folder / "tests")
    (folder / "tests/test_it.py").write_text(suite)
    (folder / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\n"
        "addopts = --import-mode=importlib --strict-markers -m 'not soak'\n"
        "markers =\n    component(*names): x\n    soak: x\n"
    )
    environment = {**os.environ, "CI": "true" if ci else "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def row(output: str, title: str) -> str:
    return next((line for line in output.splitlines() if line.startswith(f"{title}:")), "")


def test_list_names_what_ran_and_what_did_not(tmp_path: Path) -> None:
    code, output = run(tmp_path, SUITE, ci=False)
    assert code == 0, output
    assert "torch" in row(output, "ran")
    assert "(1)" in row(output, "ran")
    assert "trl" not in row(output, "ran"), "a test that skipped inside did not run"
    assert "trl" in row(output, "not used")
    assert "gone" in row(output, "missing")


def test_list_gives_the_reasons_of_skipped_tests(tmp_path: Path) -> None:
    more = MISSING + "REMEDIES['gone'] = '`make gone`'\n"
    _, output = run(tmp_path, SUITE, ci=False, more=more)
    assert "gone (`make gone`)" in row(output, "missing")
    skipped = [line for line in output.splitlines() if line.startswith("skipped:")]
    assert skipped == ["skipped:  1 test, gone is missing: `make gone`", "skipped:  1 test, no"]


def test_full_run_in_ci_fails_when_a_component_did_not_run(tmp_path: Path) -> None:
    code, output = run(tmp_path, SUITE, ci=True)
    assert code == 1, output
    absent = row(output, "FAILED")
    assert "trl" in absent
    assert "gone" in absent
    assert "torch" not in absent


def test_narrowed_run_in_ci_does_not_fail(tmp_path: Path) -> None:
    code, output = run(tmp_path, SUITE, "-k", "test_ran", ci=True)
    assert code == 0, output


def test_full_run_in_ci_passes_when_all_components_ran(tmp_path: Path) -> None:
    only = "COMPONENTS.clear()\nCOMPONENTS['torch'] = lambda: '1.0'\n"
    suite = "import pytest\n\n@pytest.mark.component('torch')\ndef test_it(): pass\n"
    code, output = run(tmp_path, suite, ci=True, more=only)
    assert code == 0, output
    assert "torch 1.0 (1)" in row(output, "ran")


IMPORTS = """
import pytest
{line}
def test_it(): raise AssertionError("must be skipped")
"""


@pytest.mark.parametrize(
    "line",
    [
        "import torch.nn",
        "torch = pytest.importorskip('torch')",
        "@pytest.mark.component('torch')",
    ],
)
def test_test_without_its_package_is_skipped_by_the_name_of_the_extra(
    tmp_path: Path, line: str
) -> None:
    hidden = "sys.modules['torch'] = None\nCOMPONENTS.clear()\nCOMPONENTS['torch'] = lambda: None\n"
    code, output = run(tmp_path, IMPORTS.format(line=line), ci=False, more=hidden)
    assert code in (0, 5), output
    skipped = [text for text in output.splitlines() if text.startswith("skipped:")]
    assert skipped == ["skipped:  1 test, torch is missing: pip install 'visenv[train]'"]


def test_file_that_imports_an_unknown_module_is_an_error(tmp_path: Path) -> None:
    code, output = run(tmp_path, IMPORTS.format(line="import no_such_package"), ci=False)
    assert code == 2, output
    assert "No module named 'no_such_package'" in output


def test_unknown_component_is_refused_with_the_list(tmp_path: Path) -> None:
    suite = "import pytest\n\n@pytest.mark.component('tensorflow')\ndef test_it(): pass\n"
    code, output = run(tmp_path, suite, ci=False)
    assert code == 4, output
    assert "there is no component 'tensorflow'" in output
    assert "transformers" in output
