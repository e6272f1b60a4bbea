"""Tests that an engine's process groups are separate from those of the trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

dist = pytest.importorskip("torch.distributed")

from visenv.policies.vllm import launch, process_groups

pytestmark = pytest.mark.component("torch")

groups = dist.distributed_c10d._world.pg_map
"""All process groups of this process."""


def meet(size: int = 1) -> Any:
    """Initialize a process group, as a trainer or vLLM does first."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=size)
    return dist.group.WORLD


@pytest.fixture
def own() -> Any:
    """Return engine process groups that are separate from those of other tests."""
    assert not dist.is_initialized()
    return process_groups.EngineProcessGroups(first_name=2_000_000)


@pytest.fixture
def trainers() -> Iterator[Callable[[], Any]]:
    yield meet
    dist.destroy_process_group()


def test_groups_are_hidden_while_engines_run_and_gone_after_the_last(own: Any) -> None:
    before = set(groups)
    with own.entered():
        first = meet()
        part = dist.new_group([0])
    assert not dist.is_initialized()
    with own.entered():  # a second engine uses the groups of the first
        assert dist.group.WORLD is first
    own.leave()
    assert {first, part} == set(groups) - before
    own.leave()
    assert set(groups) == before


def test_trainer_that_meets_first_keeps_its_group_and_its_names(
    own: Any, trainers: Callable[[], Any]
) -> None:
    group = trainers()
    names = dist.distributed_c10d._world.group_count
    before = set(groups)
    with own.entered():
        assert not dist.is_initialized()
        assert meet() is not group
    assert dist.group.WORLD is group
    assert dist.distributed_c10d._world.group_count == names
    own.leave()
    assert dist.group.WORLD is group
    assert set(groups) == before


def test_trainer_may_meet_later_and_end_all_groups(own: Any) -> None:
    with own.entered():
        meet()
    group = meet()
    assert dist.get_world_size(group) == 1
    dist.destroy_process_group()
    own.leave()
    assert not dist.is_initialized()


def test_engine_that_starts_after_that_creates_new_groups(own: Any) -> None:
    with own.entered():
        first = meet()
    meet()
    dist.destroy_process_group()
    before = set(groups)
    with own.entered():
        assert not dist.is_initialized()
        second = meet()
        assert dist.new_group([0]) in groups
    assert second is not first
    own.leave()
    own.leave()
    assert set(groups) == before


def test_engine_that_does_not_start_leaves_nothing(own: Any) -> None:
    before = set(groups)

    def start() -> None:
        with own.entered():
            meet()
            raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        start()
    assert set(groups) == before
    assert not dist.is_initialized()


def test_child_sees_one_gpu_and_nothing_of_the_launcher() -> None:
    given = {
        "PATH": "/bin",
        "RANK": "5",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "10.0.0.1",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "ACCELERATE_USE_DEEPSPEED": "true",
    }
    assert launch.narrowed(given, None) == {"PATH": "/bin"}
    assert launch.narrowed(given, 1) == {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1"}
    given["CUDA_VISIBLE_DEVICES"] = "4,6"
    assert launch.narrowed(given, 1) == {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "6"}


def test_environment_of_a_launcher_is_back_when_an_engine_has_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import os

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with launch.alone(1):
        assert "RANK" not in os.environ
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
        os.environ.update(LOCAL_WORLD_SIZE="1", LD_PRELOAD="libtcmalloc.so")  # as vLLM does
    assert os.environ["RANK"] == "1"
    assert os.environ["LOCAL_WORLD_SIZE"] == "2"
    assert not {"LD_PRELOAD", "CUDA_VISIBLE_DEVICES"} & {*os.environ}


@pytest.mark.parametrize(("local", "gpu"), [("1", 1), ("5", 1), (None, 3)])
def test_process_computes_on_the_gpu_of_its_local_rank(
    monkeypatch: pytest.MonkeyPatch, local: str | None, gpu: int
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if local:
        monkeypatch.setenv("LOCAL_RANK", local)
    assert launch.own_gpu() == gpu
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert launch.own_gpu() is None
