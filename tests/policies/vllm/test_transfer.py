"""Tests vLLM's own weight transfer between processes, except for the parts that need a GPU.

The two sides, their protocol and vLLM's loading are real; a dictionary that both sides can access
replaces CUDA's memory handles.
"""

from __future__ import annotations

import base64
import json
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.types import Sampling

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.vllm import launch, nccl, transfer
from visenv.policies.vllm.control import ServerAddress, ServerControl

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


class Connected:
    """Stands in for NCCL, which needs a GPU; records who joined with which id."""

    joined: ClassVar[list[tuple[bytes, int, int]]] = []
    id: ClassVar[bytes] = bytes(range(128))

    @classmethod
    def from_unique_id_bytes(
        cls, unique_id: bytes, *, rank: int, world_size: int, device: int
    ) -> Any:
        cls.joined.append((unique_id, rank, world_size))
        return cls()


@pytest.fixture
def without_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.distributed.device_communicators import pynccl, pynccl_wrapper

    class Library:
        def ncclGetUniqueId(self) -> Any:  # noqa: N802 - a name of NCCL
            return pynccl_wrapper.ncclUniqueId.from_buffer_copy(Connected.id)

    monkeypatch.setattr(pynccl_wrapper, "NCCLLibrary", Library)
    monkeypatch.setattr(pynccl, "PyNcclCommunicator", Connected)
    monkeypatch.setattr(nccl, "check_private_names", lambda names: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    Connected.joined.clear()


@pytest.mark.attack("servers: weight transfers unpickle nothing from a peer without the token")
def test_workers_get_the_id_of_nccl_over_the_control_connection(without_nccl: None) -> None:
    """Check that no TCP store is named, at which the workers would unpickle what they find."""
    from vllm.distributed.weight_transfer.nccl_common import NCCLWeightTransferInitInfo

    payloads: list[Any] = []
    client: Any = SimpleNamespace(init_weight_transfer_engine=payloads.append)
    sender = nccl.nccl_sender(client, object(), workers=2)
    (payload,) = payloads
    read = NCCLWeightTransferInitInfo(**json.loads(json.dumps(payload)))
    assert read.nccl_unique_id_bytes == Connected.id
    assert (read.master_address, read.master_port) == (None, None)
    assert (read.rank_offset, read.world_size) == (1, 3)
    assert (read.packed, read.packed_num_buffers) == (sender.packed, sender.packed_num_buffers)
    assert Connected.joined == [(Connected.id, 0, 3)]
    assert isinstance(sender.model_update_group, Connected)


def test_refusal_of_the_workers_is_raised_though_nccl_waits_for_them(
    without_nccl: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr(Connected, "from_unique_id_bytes", lambda *_, **__: released.wait(60))

    def refuse(payload: dict[str, Any]) -> None:
        raise PolicyError("the workers refuse")

    client: Any = SimpleNamespace(init_weight_transfer_engine=refuse)
    with pytest.raises(PolicyError, match="the workers refuse"):
        nccl.nccl_sender(client, object(), workers=1)
    released.set()


@pytest.mark.attack("servers: weight transfers unpickle nothing from a peer without the token")
@pytest.mark.parametrize("ipc", [False, True])
def test_workers_unpickle_handles_only_if_memory_is_shared(
    ipc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_ALLOW_INSECURE_SERIALIZATION", raising=False)
    variables = launch.wanted(on_cpu=False, server=True, ipc=ipc)
    assert ("VLLM_ALLOW_INSECURE_SERIALIZATION" in variables) == ipc


def test_control_sends_the_calls_of_vllms_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    control = ServerControl(ServerAddress("http://localhost"), 1.0, 5)
    monkeypatch.setattr(control, "_ask", lambda _, *call, retries: sent.append((*call, retries)))
    handles = {"a GPU": (3, b"handle")}
    control.init_weight_transfer_engine({"packed": True})
    control.start_weight_update()
    control.update_weights({"names": ["a"], "ipc_handles": handles})
    control.update_weights({"names": ["b"]})
    control.finish_weight_update()
    control.close()
    pickled = sent[2][1]["update_info"].pop("ipc_handles_pickled")
    assert pickle.loads(base64.b64decode(pickled)) == handles
    assert sent == [
        ("/init_weight_transfer_engine", {"init_info": {"packed": True}}, 0),
        ("/start_weight_update", 0),
        ("/update_weights", {"update_info": {"names": ["a"]}}, 0),
        ("/update_weights", {"update_info": {"names": ["b"]}}, 0),
        ("/finish_weight_update", 0),
    ]


class Sent(list[Any]):
    """Stands in for the weights that a trainer sends."""

    def problem(self) -> str:
        return ""


@pytest.mark.parametrize("free", [10_000, 1 << 30])
def test_weights_are_written_to_memory_only_if_they_fit(
    free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[str] = []
    monkeypatch.setattr(transfer, "free_bytes", lambda path: free)
    control = transfer.FolderTransfer(lambda _, given: folders.append(given["weights_path"]), None)
    sent: Any = Sent([("weight", torch.zeros(1000))])
    control.send(sent)
    assert folders[0].startswith("/dev/shm/") == (free > 10_000 and Path("/dev/shm").is_dir())
