"""Tests the errors for packages that are missing or damaged, and the extras that they name."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from visenv.errors import ConfigurationError
from visenv.packages import (
    EXTRAS,
    extra_of,
    installed_packages,
    missing_package,
    require_package,
    require_version,
)

ROOT = Path(__file__).parent.parent.parent
IMPORT_NAMES = {"pyopengl": "OpenGL"}


def test_extras_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra, names in EXTRAS.items():
        listed = [
            re.split(r"[<>=!~\[;\s]", each)[0].lower()
            for each in project["optional-dependencies"][extra]
        ]
        expected = {IMPORT_NAMES.get(each, each.replace("-", "_")) for each in listed}
        assert set(names) == expected, extra
    tools = {"docs", "test", "dev"}
    simulators = {"libero", "habitat"}  # these have an interpreter of their own
    assert EXTRAS.keys() | tools | simulators == project["optional-dependencies"].keys()


def test_extra_of_a_module_is_that_of_its_package() -> None:
    assert extra_of("torch.nn.functional") == "train"
    assert extra_of("pyarrow") == "data"
    assert extra_of("nobody_has_this") is None


def test_missing_package_names_the_extra() -> None:
    error = ModuleNotFoundError("No module named 'chromadb.config'", name="chromadb.config")
    said = str(missing_package("A store of vectors", error))
    assert said == (
        "A store of vectors needs the package 'chromadb': pip install 'visenv[documents]'."
    )


def test_missing_package_names_the_extra_that_suffices() -> None:
    error = ModuleNotFoundError("No module named 'torch'", name="torch")
    assert "visenv[train]" in str(missing_package("The policy 'transformers'", error))
    assert "visenv[vllm]" in str(missing_package("The policy 'vllm'", error, "vllm"))


def test_package_without_an_extra_is_installed_by_its_name() -> None:
    error = ModuleNotFoundError("No module named 'wandb'", name="wandb")
    assert str(missing_package("A tracker", error)) == (
        "A tracker needs the package 'wandb': pip install wandb."
    )


def test_package_that_is_there_but_broken_is_not_called_missing() -> None:
    error = ImportError("libcudart.so.13: cannot open shared object file")
    said = str(missing_package("The detector 'x'", error, "train"))
    assert "libcudart.so.13: cannot open shared object file" in said
    assert "cannot be imported" in said
    assert said.endswith("pip install 'visenv[train]'.")


def test_require_package_accepts_what_is_installed() -> None:
    require_package("A test", "numpy")
    with pytest.raises(ConfigurationError, match="A test needs the package 'no_such_package'"):
        require_package("A test", "no_such_package")


def test_require_version_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert require_version("A test", "numpy")[0].isdigit()
    with pytest.raises(ConfigurationError, match=r"no_such_package'.*visenv\[documents\]"):
        require_version("A test", "no-such-package", "documents")


def test_installed_packages_leaves_out_missing_ones() -> None:
    assert [*installed_packages(["numpy", "no-such-package"])] == ["numpy"]


# ------------------------------------------------------------------------- errors of the library


def hidden(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let imports and `importlib.metadata` behave as if these packages were not installed."""
    from importlib import metadata

    real = metadata.distribution

    def distribution(name: str) -> metadata.Distribution:
        if name.replace("-", "_") in packages:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    for package in packages:
        for module in [*sys.modules]:
            if module == package or module.startswith(f"{package}."):
                monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize(
    ("scorer", "package", "extra"),
    [
        ("transformers:m", "transformers", "train"),
        ("detector:m", "transformers", "train"),
        ("segmenter:m", "torch", "train"),
        ("encoder:m", "sentence_transformers", "documents"),
    ],
)
def test_scorer_without_its_package_names_the_extra(
    scorer: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.scorers import Scorer

    if package == "torch":
        # A missing transformers would be named first. It is imported before PyTorch is hidden,
        # because a transformers that has not found PyTorch would fail in later tests.
        pytest.importorskip("transformers")
    hidden(monkeypatch, package)
    with pytest.raises(ConfigurationError, match=rf"'{package}': pip install 'visenv\[{extra}\]'"):
        Scorer.parse(scorer).counts()  # creates the service, which reads the versions


@pytest.mark.parametrize("policy", ["vllm", "vllm-server"])
def test_vllm_policy_without_pytorch_names_the_extra_vllm(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from visenv.registration import load

    pytest.importorskip("transformers")  # with PyTorch, for later tests
    for module in [*sys.modules]:
        if module.startswith("visenv.policies.vllm"):
            monkeypatch.delitem(sys.modules, module)
    hidden(monkeypatch, "torch")
    expected = rf"The policy '{policy}' needs the package 'torch': pip install 'visenv\[vllm\]'"
    with pytest.raises(ConfigurationError, match=expected):
        load("policy", policy)


# -------------------------------------------------------------------------------------- OpenCV


@pytest.mark.parametrize(
    ("left", "problem"),
    [
        (None, "import of cv2 halted"),  # all files are gone
        (ModuleType("cv2"), "no attribute 'imdecode'"),  # an empty folder is left
    ],
)
def test_damaged_opencv_names_both_packages(
    left: ModuleType | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cv2", left)
    monkeypatch.delitem(sys.modules, "visenv.opencv", raising=False)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        importlib.import_module("visenv.opencv")
    assert "pip uninstall opencv-python opencv-python-headless" in str(caught.value)
    assert "then pip install opencv-python-headless" in str(caught.value)


def test_all_modules_import_opencv_by_the_module_that_explains_its_errors() -> None:
    """Check that `DecoderProcess` explains the error of its child, which must not import visenv."""
    exempt = {"visenv/opencv.py", "visenv/decoding/child/video.py"}
    found = set()
    for folder in ("visenv", "envs", "policies", "algos"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import) and any(each.name == "cv2" for each in node.names):
                    found.add(file.relative_to(ROOT).as_posix())
    assert {name for name in found if not name.startswith("visenv/envs")} == exempt
