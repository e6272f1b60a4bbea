"""Tests vLLM's own weight transfer between processes, except for the parts that need a GPU.

The two sides, their protocol and vLLM's loading are real; a dictionary that both sides can access
replaces CUDA's memory handles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.types import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.vllm import transfer

pytestmark = pytest.mark.component("vllm", "torch", "transformers")

MEMORY: dict[str, Any] = {}


def register() -> Any:
    """Register the backend "memory" in vLLM and return the init information of its sender."""
    from vllm.distributed.weight_transfer import base, factory
    from vllm.distributed.weight_transfer.ipc_engine import IPCWeightTransferEngine

    @dataclass
    class Nothing(base.WeightTransferInitInfo):
        pass

    @dataclass
    class Names(base.WeightTransferUpdateInfo):
        names: list[str]

    @dataclass
    class Begin(base.TrainerInitInfo):
        backend: ClassVar[str] = "memory"

    class Receiver(IPCWeightTransferEngine):  # begins and ends an update like the base class
        init_info_cls, update_info_cls = Nothing, Names  # type: ignore[assignment]

        @override
        def init_transfer_engine(self, init_info: Any) -> None:
            pass

        @override
        def update_weights(self, update_info: dict[str, Any]) -> None:
            names = self.parse_update_info(update_info).names
            self.model.load_weights([(name, MEMORY[name]) for name in names])  # type: ignore[operator]

    class Sender(base.TrainerWeightTransferEngine[Begin]):
        init_info_cls = Begin

        @classmethod
        @override
        def trainer_init(cls, init_info: Any, *, client: Any, source: Any = None) -> Any:
            client.init_weight_transfer_engine({})
            return cls(client=client, source=source)

        @override
        def send_weights(self) -> None:
            assert self.source is not None
            self.client.start_weight_update()
            MEMORY.update(self.source)
            self.client.update_weights({"names": [each.name for each in self.source.metadata()]})
            self.client.finish_weight_update()

    factory.WeightTransferEngineFactory.register_engine("memory", Receiver)
    factory.WeightTransferTrainerFactory.register_engine("memory", Sender)
    return Begin(rank=0)


@pytest.fixture(scope="module")
def apart(start: Callable[..., Any], qwen3_folder: Path, small: dict[str, Any]) -> Any:
    """Return an engine that receives weights through memory."""
    begin = register()
    options = small["options"] | {"weight_transfer_config": {"backend": "memory"}}
    policy = start(qwen3_folder, options=options)
    engine = policy._present.engine
    engine.transfer = transfer.NCCLTransfer(transfer.EngineControl(engine._engine), "memory", 1)
    engine.transfer._information = lambda: begin
    return policy


def test_weights_sent_by_vllms_own_transfer_are_those_sampled_with(
    apart: Any, fresh: Any, exam: Any
) -> None:
    for version in (1, 2):
        with torch.no_grad():
            for weight in fresh.parameters():
                weight.mul_(1.05)
        apart.load(fresh.network.model.state_dict().items(), version)
        segments = exam.play(apart, range(4), sampling=Sampling(0.0, 8))
        assert exam.error(fresh, segments, exam.images(range(4))) < 1e-5
        assert set(segments[0].policy_version[segments[0].loss_mask].tolist()) == {version}


def test_transfer_that_breaks_off_leaves_an_engine_that_must_be_restarted(
    apart: Any, fresh: Any, exam: Any
) -> None:
    backwards = reversed(list(fresh.network.model.state_dict().items()))
    with pytest.raises(PolicyError, match=r"in the model's order: .*embed_tokens|patch_embed"):
        apart.load(backwards, 3)
    assert apart.stale
    with pytest.raises(PolicyError, match="lost its trainer"):
        exam.play(apart, [0])


def test_transfer_follows_from_where_the_engine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    assert transfer.resolve("auto", {}) == "direct"
    assert transfer.resolve("nccl", {}) == "nccl"
    assert transfer.resolve("auto", {"tensor_parallel_size": 2}) == "folder"
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    assert transfer.resolve("auto", {}) == "folder"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert transfer.resolve("auto", {}) == "ipc"
    with pytest.raises(ConfigurationError, match="VLLM_ENABLE_V1_MULTIPROCESSING=0"):
        transfer.resolve("direct", {})


def test_process_of_several_has_one_gpu_for_its_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    with pytest.raises(ConfigurationError, match=r"Each of several .* sample from a server"):
        transfer.resolve("auto", {"tensor_parallel_size": 2})
    told = transfer.own_arguments({})
    assert told == {"seed": 3, "distributed_executor_backend": transfer.EXECUTOR}
