"""Tests the ranges of versions in pyproject.toml (`make bounds`).

Each row of the printed table is a new virtual environment with the core, or with the core and some
extras. Its packages have the lowest versions that the ranges of pyproject.toml admit
(``--resolution lowest-direct`` of uv), or the newest ones (``highest``). No constraints are used.
The fast tests of what is installed run in each environment.

PyTorch and torchvision are not resolved, because a package index may have only CUDA builds of
several gigabytes. pip installs them first, from ``TORCH_INDEX`` if it is set. The lowest version of
PyTorch is tested only with ``TORCH_INDEX``, because PyTorch's own index has CPU builds of all
versions; otherwise the version of ``constraints/cpu.txt`` is used.

::

    python -m tests.bounds --uv build/uv/bin/uv core data train,vllm
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "build/bounds"

RESOLUTIONS: Final = {"lowest": "lowest-direct", "newest": "highest"}
EXTRAS: Final = ("train", "data", "documents", "ray", "hub", "embodied", "validate")
"""The extras that are tested by default; `vllm` needs a GPU, simulators are pinned exactly."""

SETS: Final = ("core", *EXTRAS, ",".join(EXTRAS))
TOOLS: Final = ("pytest>=9", "pytest-timeout>=2.3", "hypothesis>=6.100", "psutil")
"""Packages of the tests, which are installed last and keep the versions that are installed."""

SOURCES: Final = ("deepspeed",)
"""Packages without wheels. Of all others, only versions with a wheel are used."""

WARNINGS: Final = (
    "error",
    "ignore::DeprecationWarning",  # of the lowest versions of other packages ...
    r"error::DeprecationWarning:visenv\.",  # ... but not of visenv
    r"error::DeprecationWarning:tests\.",
    "ignore::FutureWarning",  # PEFT calls what transformers 5.24 has deprecated
    r"error::FutureWarning:visenv\.",
    r"error::FutureWarning:tests\.",
    "error:.*multi-threaded, use of fork:DeprecationWarning",
)
"""Warnings that are errors in these tests."""

TORCH: Final = ("torch", "torchvision")
_VISION_AHEAD: Final = 15
"""PyTorch 2.N belongs to torchvision 0.(N + 15)."""

_REPORT = """
import json, platform, re, sys
from importlib.metadata import distributions
from pathlib import Path

tools, found, copyleft, folder = {"pip", "setuptools", "visenv"}, {}, [], Path(sys.argv[1])
for each in distributions(path=[sys.argv[1]]):
    name = each.metadata["Name"].lower().replace("_", "-")
    if name in tools:
        continue
    found[name] = each.version
    fields = [each.metadata.get("License-Expression") or (each.metadata.get("License") or "")[:200]]
    fields += [text for text in each.metadata.get_all("Classifier") or () if "License" in text]
    if re.search(r"(?<!L)GPL|GNU (Affero )?General Public", " ".join(fields)):
        copyleft.append(name)
size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
report = {"versions": found, "copyleft": sorted(copyleft), "megabytes": size / 1e6}
print(json.dumps(report | {"python": platform.python_version()}))
"""


@dataclass
class Row:
    """Holds the results of one environment.

    Attributes:
        versions: The versions of all installed packages, by name.
        tests: Numbers of tests by outcome.
        problems: Why the row is no success; empty if everything worked.
    """

    extras: str
    resolution: str
    python: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    megabytes: float = 0.0
    copyleft: list[str] = field(default_factory=list)
    tests: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Environment:
    """Creates one environment and runs the tests in it."""

    def __init__(self, options: argparse.Namespace, extras: str, resolution: str) -> None:
        self._uv: str = options.uv
        self._interpreter: str = options.python
        self._tested: bool = options.tests
        self._extras = [] if extras == "core" else extras.split(",")
        self.row = Row(extras, resolution)
        self._folder = FOLDER / f"{extras.replace(',', '-')}-{resolution}"
        self._python = self._folder / "bin/python"
        self._pins = self._folder / "pins.txt"

    def test(self, *, keep: bool) -> Row:
        """Create the environment, run the tests, and remove it unless `keep` is true."""
        try:
            self._create()
            self._install()
            self._describe()
            if self._tested:
                self._run_tests()
        except subprocess.CalledProcessError as error:
            output = f"{error.stdout or ''}{error.stderr or ''}".strip()
            self._folder.with_suffix(".log").write_text(output)
            said = output.splitlines()[-8:]
            self.row.problems.append(" ".join([f"{' '.join(error.cmd[:4])}:", *said]))
        finally:
            if not keep:
                shutil.rmtree(self._folder, ignore_errors=True)
        return self.row

    def _create(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._run(
            self._uv, "venv", "--quiet", "--seed", "--python", self._interpreter, self._folder
        )
        excluded = self._folder / "excluded.txt"
        excluded.write_text("\n".join(TORCH))
        options = [f"--extra={extra}" for extra in self._extras]
        resolution = RESOLUTIONS[self.row.resolution]
        self._run(
            *(self._uv, "pip", "compile", "--quiet", str(ROOT / "pyproject.toml"), *options),
            *(f"--resolution={resolution}", f"--python={self._python}", "--no-annotate"),
            *("--excludes", excluded, "--output-file", self._pins),
            *("--only-binary=:all:", *(f"--no-binary={name}" for name in SOURCES)),
        )

    def _install(self) -> None:
        torch = self._torch() if {"train", "documents", "vllm"} & {*self._extras} else []
        if torch:
            index = os.environ.get("TORCH_INDEX")
            source = ["--index-url", index] if index else []
            pip = (self._python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
            self._run(*pip, "--no-deps", *source, *torch)
            for file in (ROOT / "constraints/torchvision").iterdir():
                shutil.copy(file, self._packages())
        self._uv_install("--requirements", self._pins, *torch)
        self._uv_install("--no-deps", "--editable", ROOT)

    def _torch(self) -> list[str]:
        """Return the requirements of PyTorch and torchvision."""
        version = pins()["torch"]
        if self.row.resolution == "lowest" and os.environ.get("TORCH_INDEX"):
            version = f"{lower_bounds()['torch']}.0"
        minor = int(version.split(".")[1])
        return [f"torch=={version}", f"torchvision==0.{minor + _VISION_AHEAD}.*"]

    def _describe(self) -> None:
        found = json.loads(self._run(self._python, "-c", _REPORT, self._packages()))
        self.row.python, self.row.versions = found["python"], found["versions"]
        self.row.copyleft, self.row.megabytes = found["copyleft"], found["megabytes"]
        self._run(self._uv, "pip", "check", f"--python={self._python}")

    def _run_tests(self) -> None:
        self._uv_install(*TOOLS)
        folders = ["tests/visenv", "tests/envs", "tests/policies"]
        if "train" in self._extras:
            folders += ["tests/algos/policy_gradient", "tests/algos/test_sft.py"]
        report, log = self._folder.with_suffix(".xml"), self._folder.with_suffix(".log")
        plugins = ("pytest_timeout", "_hypothesis_pytestplugin", "tests.bounds_selection")
        command = [
            *(str(self._python), "-m", "pytest", "-q", *(f"-p{name}" for name in plugins)),
            *("-pno:cacheprovider", "-m", "not slow and not soak", f"--junitxml={report}"),
            *("--hypothesis-profile=quick", "--ignore=tests/visenv/sandbox"),
            *(f"--ignore=tests/envs/{name}test_contract.py" for name in ("", "arft/")),
            *folders,
            "-ofilterwarnings=" + "\n".join(WARNINGS),
        ]
        variables = {
            "OMP_NUM_THREADS": "1",
            "VISENV_EXTRAS": ",".join(self._extras),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # those of other packages may be too old
        }
        with log.open("w") as file:
            subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **variables},
                stdout=file,
                stderr=file,
                check=False,
            )
        self.row.tests = outcomes(report.read_text() if report.exists() else "")
        if not self.row.tests.get("passed"):
            self.row.problems.append(f"no test passed: {log.relative_to(ROOT)}")
        if self.row.tests.get("failed"):
            failed = self.row.tests["failed"]
            self.row.problems.append(f"{failed} tests failed: {log.relative_to(ROOT)}")

    def _uv_install(self, *arguments: str | Path) -> None:
        self._run(self._uv, "pip", "install", "--quiet", f"--python={self._python}", *arguments)

    def _packages(self) -> Path:
        (folder,) = self._folder.glob("lib/python*/site-packages")
        return folder

    def _run(self, *command: str | Path) -> str:
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()


def pins() -> dict[str, str]:
    """Return the tested versions of ``constraints/cpu.txt`` by name."""
    lines = (ROOT / "constraints/cpu.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def project() -> dict[str, Any]:
    """Return the table ``project`` of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def requirements(extra: str | None = None) -> dict[str, str]:
    """Return the ranges of versions of the core or of an extra, by the name of the package."""
    listed = project()["optional-dependencies"][extra] if extra else project()["dependencies"]
    found = [re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[.*\])?(.*)", each) for each in listed]
    return {each[1].lower().replace("_", "-"): each[2] for each in found if each}


def lower_bounds() -> dict[str, str]:
    """Return the lower bounds of all direct dependencies, or an empty text for those without."""
    bounds = {}
    for extra in (None, "vllm", *EXTRAS):
        for name, allowed in requirements(extra).items():
            found = re.search(r">=([0-9.]+)", allowed)
            bounds[name] = found[1] if found else ""
    return bounds


def outcomes(report: str) -> dict[str, int]:
    """Return the numbers of tests of a report in JUnit's format, by outcome."""
    found = re.search(r"<testsuite [^>]*>", report)
    if found is None:
        return {}
    numbers = {name: int(count) for name, count in re.findall(r' (\w+)="(\d+)"', found[0])}
    failed = numbers["errors"] + numbers["failures"]
    passed = numbers["tests"] - failed - numbers["skipped"]
    return {"passed": passed, "skipped": numbers["skipped"], "failed": failed}


def table(rows: Sequence[Row]) -> str:
    """Return the results as a table in Markdown."""
    outcome = ("passed", "skipped", "failed")
    lines = [
        f"| installed | versions | Python | packages | MB | GPL | {' | '.join(outcome)} | result |",
        "|---|---|---|--:|--:|---|--:|--:|--:|---|",
    ]
    for row in rows:
        counts = " | ".join(str(row.tests.get(each, "")) for each in outcome)
        result = "; ".join(row.problems) or "ok"
        licenses = ", ".join(row.copyleft) or "none"
        lines.append(
            f"| {row.extras.replace(',', ', ')} | {row.resolution} | {row.python} | "
            f"{len(row.versions)} | {row.megabytes:.0f} | {licenses} | {counts} | {result} |"
        )
    return "\n".join(lines)


def versions_table(rows: Sequence[Row]) -> str:
    """Return the versions of the direct dependencies that were tested, as a table in Markdown."""
    lines = ["| package | range | lowest tested | newest tested |", "|---|---|---|---|"]
    for extra in (None, *EXTRAS):
        for name, allowed in requirements(extra).items():
            tested = []
            for resolution in RESOLUTIONS:
                found = {
                    row.versions[name]
                    for row in rows
                    if row.resolution == resolution and name in row.versions
                }
                tested.append(", ".join(sorted(found)))
            if any(tested):
                lines.append(f"| {name} | {allowed or 'any'} | {' | '.join(tested)} |")
    return "\n".join(dict.fromkeys(lines))


def main(words: Sequence[str] | None = None) -> int:
    """Test the environments; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help=f"core, or extras joined by commas: {SETS}")
    parser.add_argument("--uv", default="uv", help="the program uv")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    parser.add_argument("--versions", nargs="*", choices=[*RESOLUTIONS], default=[*RESOLUTIONS])
    parser.add_argument(
        "--no-tests", dest="tests", action="store_false", help="only install, and print the sizes"
    )
    parser.add_argument("--keep", action="store_true", help="keep the environments in build/bounds")
    options = parser.parse_args(words)
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = []
    for extras in options.sets or SETS:
        for resolution in options.versions:
            rows.append(Environment(options, extras, resolution).test(keep=options.keep))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    print("", table(rows), "", versions_table(rows), sep="\n")
    return int(any(row.problems for row in rows))


if __name__ == "__main__":
    sys.exit(main())
