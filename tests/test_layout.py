"""Tests the layout: three folders at the root, one namespace, no file twice, and a light core."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("envs", "policies", "algos")
HEAVY = ("torch", "transformers", "vllm", "chromadb", "matplotlib", "tensorboard", "pyarrow", "trl")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def tree() -> dict[str, bytes]:
    """Return the content of every file of the repository except links."""
    listing = run("git", "ls-files", "-z", "-c", "-o", "--exclude-standard", cwd=ROOT)
    if listing.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in set(listing.stdout.split("\0")) if name]
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in paths
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize("part", [*PARTS, "recipes"])
def test_links_lead_to_their_folders(part: str) -> None:
    link = ROOT / "visenv" / part
    assert link.is_symlink()
    assert link.readlink() == Path("..") / part
    assert link.resolve() == (ROOT / part).resolve()


@pytest.mark.parametrize("part", PARTS)
def test_part_refuses_any_other_name(part: str) -> None:
    done = run(sys.executable, "-c", f"import {part}", cwd=ROOT)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said == f"ImportError: import visenv.{part}, not {part}: this folder is that package"


def test_installed_package_is_this_tree(tmp_path: Path) -> None:
    code = (
        "import json, visenv.envs, visenv.policies, visenv.algos as algos, visenv;"
        "print(json.dumps([m.__file__ for m in (visenv.envs, visenv.policies, algos)]))"
    )
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = [Path(name) for name in json.loads(done.stdout)]
    assert found == [ROOT / "visenv" / part / "__init__.py" for part in PARTS], (
        "install this tree editable: make .venv"
    )


def test_importing_visenv_loads_nothing_heavy(tmp_path: Path) -> None:
    code = f"import sys, visenv; print(sorted({{*{(*HEAVY, 'cv2')!r}}} & {{*sys.modules}}))"
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# Imports every module of the core; prints the imported heavy packages and parts.
IMPORT_THE_CORE = f"""
import importlib, pathlib, sys, visenv

root = pathlib.Path(visenv.__file__).parent
for file in sorted(root.rglob("*.py")):
    path = file.relative_to(root).with_suffix("")
    # A backend of a scorer is loaded with its first request, and brings what it runs on.
    is_backend = path.parts[:2] == ("scorers", "backends")
    if path.parts[0] not in {PARTS!r} and path.name != "__main__" and not is_backend:
        importlib.import_module(".".join(("visenv", *path.parts)).removesuffix(".__init__"))
from visenv.registration import MANIFESTS
manifests = {{"visenv.envs", *(path.partition(":")[0] for path in MANIFESTS)}}
parts = tuple("visenv." + part for part in {PARTS!r})
loaded = [name for name in sys.modules if name in {HEAVY!r} or name.startswith(parts)]
print([name for name in loaded if name not in manifests])
"""


def test_modules_of_the_core_load_no_trainer_and_no_part(tmp_path: Path) -> None:
    done = run(sys.executable, "-c", IMPORT_THE_CORE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    return run(Path(sys.executable).parent / "lint-imports", "--no-cache", cwd=root)


def test_import_contracts_are_kept() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


def test_import_contracts_cover_a_new_module(tmp_path: Path) -> None:
    for name in ("visenv", *PARTS):
        shutil.copytree(
            ROOT / name,
            tmp_path / name,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "visenv/new.py").write_text("import torch\n\nimport visenv.envs\n")
    (tmp_path / "algos/new.py").write_text("import visenv.policies\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1
    assert "visenv.new -> visenv.envs" in done.stdout
    assert "visenv.new is not allowed to import torch" in done.stdout
    assert "visenv.algos is not allowed to import visenv.policies" in done.stdout


def import_circle(imports: dict[str, set[str]]) -> list[str]:
    """Return the modules of a circle of imports, in order; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_import_circle_is_found() -> None:
    assert import_circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert {*import_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})} == {"a", "b", "c"}


def test_modules_import_each_other_in_no_circle() -> None:
    # The graph also has the imports inside of functions and those for type checkers.
    graph = grimp.build_graph("visenv", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    # For type checkers only: a teacher plays an environment, which has teachers.
    imports["visenv.teacher"] -= {"visenv.env"}
    assert "visenv.envs.zoom_vqa.env" in imports["visenv.envs.zoom_vqa.make"]
    assert import_circle(imports) == []


def build(into: Path, *what: str) -> None:
    done = run(sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", into, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel_files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert len(names) == len(set(names))
        return {name: archive.read(name) for name in names}


def expected_wheel() -> dict[str, bytes]:
    files = {}
    for name, content in tree().items():
        top = name.split("/")[0]
        if top in ("visenv", *PARTS, "recipes"):
            files[name if top == "visenv" else f"visenv/{name}"] = content
    files["visenv/simulators/versions.txt"] = tree()["constraints/simulators.txt"]
    return files


def test_wheel_holds_each_file_once(tmp_path: Path) -> None:
    expected = expected_wheel()
    build(tmp_path, "--wheel")
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel_files(wheel) == expected
    assert "visenv/py.typed" in expected


def test_source_archive_holds_each_file_once_and_builds_the_same_wheel(tmp_path: Path) -> None:
    expected, expected_in_wheel = tree(), expected_wheel()
    build(tmp_path)  # builds the source archive, then the wheel from it alone
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        members = [member for member in opened.getmembers() if not member.isdir()]
        found = {}
        for member in members:
            content = opened.extractfile(member)
            assert content is not None, f"{member.name} is not a file"
            found[member.name.partition("/")[2]] = content.read()
    assert len(found) == len(members)
    del found["PKG-INFO"]
    assert found == expected
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel_files(wheel) == expected_in_wheel
