"""Tests that the wheel and the source archive install cleanly, and that README.md works there.

Dependencies are those of the running environment, since no test needs the network; only visenv is
installed. With VISENV_FROM_INDEX=1, as in the public workflow, pip installs the dependencies from
the package index into an empty environment.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
FROM_INDEX = os.environ.get("VISENV_FROM_INDEX") == "1"

pytestmark = pytest.mark.timeout(600)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    outside = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in outside}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the source archive and the wheel that was built from it alone."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def installed(package: Path, folder: Path) -> Path:
    """Install a package in a new environment; return the folder of its programs."""
    venv.create(folder, with_pip=False)
    python = folder / "bin/python"
    options = []
    if not FROM_INDEX:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        # Python searches the paths of a .pth file, but not the .pth files in them (an editable
        # visenv).
        libraries = Path(sysconfig.get_path("purelib"))
        place = folder / "lib" / version / "site-packages/dependencies.pth"
        place.write_text(f"{libraries}\n", encoding="utf-8")
        options = ["--no-deps", "--no-index", "--no-build-isolation"]
    pip = ("-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet")
    # Only the modules that the test imports are compiled.
    run(sys.executable, *pip, "--ignore-installed", "--no-compile", *options, package, cwd=folder)
    return folder / "bin"


def first_snippet() -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("pattern", ["*.whl", pytest.param("*.tar.gz", marks=pytest.mark.soak)])
def test_package_installs_in_a_clean_environment_and_plays(
    built: Path, tmp_path: Path, pattern: str
) -> None:
    (package,) = built.glob(pattern)
    programs = installed(package, tmp_path / "clean")
    python = programs / "python"
    place = run(python, "-c", "import visenv; print(visenv.__file__)", cwd=tmp_path).strip()
    assert Path(place).is_relative_to(tmp_path)
    heavy = "import sys; print([name for name in ('torch', 'transformers') if name in sys.modules])"
    said = run(python, "-c", f"{first_snippet()}\n{heavy}", cwd=tmp_path)
    assert said.startswith("2.1 ")
    assert said.endswith("[]\n")
    assert "visenv/ZoomVQA-v0" in run(programs / "visenv", "list", cwd=tmp_path)
    card = run(programs / "visenv", "card", "ZoomVQA-v0", "--episodes", "1", cwd=tmp_path)
    assert "Policy, turn 2" in card


def test_package_description_has_no_link_that_needs_the_repository(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("dist-info/METADATA")]
        text = archive.read(name).decode()
    description = text.partition("\n\n")[2]
    assert "## Train Qwen2.5-VL on your rows" in description
    links = re.findall(r"\]\(([^)]+)\)", description)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_package_names_the_python_versions_of_the_public_workflow() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [re.search(r"Python :: (3\.\d+)$", each) for each in project["classifiers"]]
    named = [each[1] for each in found if each]
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python-version: \[(.*)\]", workflow)
    assert named == re.findall(r"\d\.\d+", matrix)
    assert project["requires-python"] == f">={named[0]}"


README = (
    "See [the *docs*](docs/a.md#top), [Gym](https://gym.example/x), [below](#end).\n![b](c/d.webp)"
)


def test_description_links_into_the_repository(hook: ModuleType) -> None:
    assert hook.description(README, "https://host.example/o/visenv") == (
        "See [the *docs*](https://host.example/o/visenv/blob/main/docs/a.md#top), "
        "[Gym](https://gym.example/x), [below](#end).\n"
        "![b](https://host.example/o/visenv/raw/main/c/d.webp)"
    )


def test_description_without_an_address_has_plain_text(hook: ModuleType) -> None:
    said = hook.description(README, "")
    assert said == "See the *docs*, [Gym](https://gym.example/x), [below](#end).\n"
