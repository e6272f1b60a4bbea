"""Tests the manifests of families: they import nothing, and the registry has their names."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from visenv import registration
from visenv.errors import ConfigurationError
from visenv.family import EnvEntry, Family
from visenv.plugins import SECTIONS, import_attribute
from visenv.registration import CORE, MANIFESTS, RECIPES, TABLES, path_of

ROOT = Path(__file__).parents[2]
PACKAGES = [path.partition(":")[0] for path in MANIFESTS]
FAMILIES: list[Family] = [import_attribute(path, path) for path in MANIFESTS]


def test_folders_of_environments_have_manifests_that_are_listed() -> None:
    folders = {path.parent.name for path in ROOT.glob("envs/*/__init__.py")}
    assert {package.rpartition(".")[2] for package in PACKAGES} == folders


@pytest.mark.parametrize("package", PACKAGES)
def test_manifest_imports_only_its_class(package: str) -> None:
    file = ROOT / package.removeprefix("visenv.").replace(".", "/") / "__init__.py"
    tree = ast.parse(file.read_text())
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {getattr(node, "module", "") for node in imports} == {
        "__future__",
        "typing",
        "visenv.family",
    }


def test_importing_visenv_loads_of_the_families_only_their_manifests() -> None:
    code = "import sys, visenv; print([n for n in sys.modules if n.startswith('visenv.envs.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == PACKAGES


def test_registry_has_the_names_of_all_manifests_once() -> None:
    for kind, section in SECTIONS.items():
        names = [name for family in (CORE, *FAMILIES) for name in family.names(section)]
        assert [*TABLES[kind]] == names
        assert not [name for name, count in Counter(names).items() if count > 1]
    assert {section.name for section in fields(Family)} == set(SECTIONS.values())


@pytest.mark.component("opencv", "torch", "transformers")
@pytest.mark.parametrize("kind", [kind for kind in SECTIONS if kind != "recipe"])
def test_objects_of_the_manifests_exist(kind: str) -> None:
    for name, path in TABLES[kind].items():
        assert import_attribute(path, name) is not None


def test_manifests_name_every_recipe() -> None:
    places = {path_of("recipe", name) for name in RECIPES}
    assert places == {f"visenv.recipes:{path.name}" for path in ROOT.glob("recipes/*.toml")}
    assert all(place == f"visenv.recipes:{name}.toml" for name, place in RECIPES.items())


@pytest.mark.parametrize("package", PACKAGES)
def test_family_exports_the_names_of_its_makers(package: str) -> None:
    make = importlib.import_module(f"{package}.make")
    family = importlib.import_module(package)
    for name in make.__all__:
        assert getattr(family, name) is getattr(make, name)
    with pytest.raises(AttributeError, match=f"'{package}' has no attribute 'open_data'"):
        _ = family.open_data


def test_function_make_is_not_hidden_by_its_module() -> None:
    code = (
        "import visenv.envs.mags.make, visenv.envs.zoom_vqa\n"
        "from visenv.envs.mags import make\n"
        "from visenv.envs.zoom_vqa import make as other\n"
        "assert callable(make) and callable(other) and callable(visenv.envs.zoom_vqa.make)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"data": ["decks"]}, r"data of a Family must map .* class str, got \['decks'\]"),
        ({"records": {"Cards": 3}}, "records of a Family must map"),
        ({"environments": {"a/A-v0": "m:make"}}, "environments of a Family .* class EnvEntry"),
    ],
)
def test_manifest_of_another_form_is_refused(sections: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Family(**sections)


def test_names_of_environments_are_their_entry_points() -> None:
    family = Family(environments={"a/A-v0": EnvEntry("m:make", "cards")}, data={"decks": "m:Decks"})
    assert family.names("environments") == {"a/A-v0": "m:make"}
    assert family.names("data") == {"decks": "m:Decks"}
    assert family.names("suites") == {}


def test_ids_are_registered_with_their_makers() -> None:
    for env_id, entry in registration.ENVIRONMENTS.items():
        assert registration.env_spec(env_id).entry_point == entry.entry_point


CORE_FILES = ("visenv/registration.py", "visenv/cli", "visenv/simulators/survey.py")
NAMES = (*(package.rpartition(".")[2] for package in PACKAGES), "house", "armbench")
FAMILY_NAMES = re.compile(rf"\b({'|'.join(NAMES)})\b", re.IGNORECASE)


def test_core_names_no_family_outside_the_list_of_manifests() -> None:
    tiny = [*ROOT.glob("policies/transformers/tiny*.py")]
    files = [file for place in CORE_FILES for file in ROOT.joinpath(place).rglob("*.py")]
    files = [*files, *(ROOT / place for place in CORE_FILES if place.endswith(".py")), *tiny]
    found = [
        line.strip().strip('",')
        for file in files
        for line in file.read_text().splitlines()
        if FAMILY_NAMES.search(line)
    ]
    assert len(files) > 15
    assert {*found} == {path for path in MANIFESTS if FAMILY_NAMES.search(path)}


WITHOUT = """
import gymnasium as gym
from visenv.cli import main
from visenv.registration import ENVIRONMENTS, load
from visenv.rollout import Collector, EpisodeSpec

assert not [env_id for env_id in gym.registry if "Mags" in env_id or "Arm" in env_id]
make = lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny")
episodes = Collector(make, load("policy", "oracle")()).episodes([EpisodeSpec(0)])
print(len(ENVIRONMENTS), episodes[0].reward)
assert main(["list"]) == 0
main(["data", "--help"])
"""


def test_package_works_without_two_families(tmp_path: Path) -> None:
    for part in ("visenv", "envs", "policies", "algos", "recipes"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, tmp_path / part, symlinks=True, ignore=ignored)
    registry = tmp_path / "visenv/registration.py"
    text = registry.read_text()
    for family in ("arm", "mags"):
        shutil.rmtree(tmp_path / "envs" / family)
        line = f'    "visenv.envs.{family}:FAMILY",\n'
        assert line in text
        text = text.replace(line, "")
    registry.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *said = done.stdout.splitlines()
    removed = sum(
        len(family.environments)
        for package, family in zip(PACKAGES, FAMILIES, strict=True)
        if package.endswith((".arm", ".mags"))
    )
    assert first == f"{len(registration.ENVIRONMENTS) - removed} 2.1"
    assert not [line for line in said if "Arm" in line or "mags" in line]
    steps = [line.split()[0] for line in said if line.startswith("  ")]
    assert {"trajectories", "distort", "argos-mix"} < {*steps}
    assert "dedupe" not in steps
