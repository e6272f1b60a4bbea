"""Transfers weights into an engine, with the functions of vLLM.

=========  ==================================================================================
``direct``  the engine computes in this process: its loader reads the tensors directly
``ipc``     it computes in other processes on the same GPUs: they map the trainer's memory
``nccl``    it computes on other GPUs: the trainer broadcasts to them
``folder``  without a GPU, in other processes: the weights are written and read again
=========  ==================================================================================
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import save_file

from visenv.disk import disk_errors, free_bytes
from visenv.errors import ConfigurationError, PolicyError
from visenv.launcher import rank, world_size
from visenv.private_names import check_private_names

from .nccl import nccl_sender
from .private_names import SENDER_NAMES
from .weights import WeightUpdate

KINDS = ("auto", "direct", "ipc", "nccl", "folder")

_MEMORY = Path("/dev/shm")

_ROOM = 1 << 20
"""Bytes of a file of weights besides the weights."""

EXECUTOR = "visenv.policies.vllm.executor.InProcessExecutor"


class WeightTransfer(Protocol):
    """Sends weights to one engine.

    Attributes:
        broken: Whether a failure left the two sides in different states; the engine must be
            restarted then.
    """

    broken: bool

    def send(self, delivery: WeightUpdate) -> None:
        """Send all weights; return when the engine has them."""


class DirectTransfer:
    """Passes weights to the engine's only worker, which is in this process.

    vLLM's `load_weights` is not sufficient on a CPU, where layers are packed after loading;
    `reload_weights` packs them again, and keeps the addresses that CUDA graphs have recorded.
    """

    broken = False

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def send(self, delivery: WeightUpdate) -> None:
        """Let the worker iterate over the weights."""
        self._worker.reload_weights(weights_iterator=iter(delivery))


class NCCLTransfer:
    """Sends weights with vLLM's transfer between processes; this process is the only sender.

    Args:
        client: Controls the engine's side: `EngineControl` or `ServerControl`.
        kind: ``"ipc"`` or ``"nccl"``.
        workers: Number of receiving processes.
    """

    def __init__(self, client: Any, kind: str, workers: int) -> None:
        self._client = client
        self._kind = kind
        self._workers = workers
        self._source: Any = _Source()
        self._sender: Any = None
        self.broken = False

    def send(self, delivery: WeightUpdate) -> None:
        """Send with vLLM's trainer engine; the first call connects the two sides."""
        self._source.delivery = delivery
        self.broken = True
        if self._sender is None:
            self._sender = self._connect()
        self._sender.send_weights()
        self.broken = False

    def _connect(self) -> Any:
        if self._kind == "nccl":
            return nccl_sender(self._client, self._source, self._workers)
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory

        return WeightTransferTrainerFactory.trainer_init(
            self._information(), client=self._client, source=self._source
        )

    def _information(self) -> Any:
        from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

        return IPCTrainerInitInfo(rank=0, packed=True)


class _Source:
    """Implements vLLM's `WeightSource`, which provides names and shapes, then the weights.

    vLLM builds its batches from the names and shapes, so that the weights must come in the model's
    own order.
    """

    delivery: WeightUpdate

    def metadata(self) -> list[Any]:
        from vllm.distributed.weight_transfer.base import ParamMeta

        return [
            ParamMeta(name, self.delivery.dtype, shape)
            for name, shape in self.delivery.shapes.items()
        ]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        expected = iter(self.delivery.shapes)
        for name, weight in self.delivery:
            due = next(expected)
            if name != due:
                raise PolicyError(
                    f"Weights must be in the model's order: expected {due}, got {name}."
                )
            yield name, weight.contiguous()
        if problem := self.delivery.problem():
            raise PolicyError(f"These are not the model's weights: {problem}.")

    def held_names(self) -> None:
        return None


class EngineControl:
    """Implements the four calls of vLLM's sender for an engine in this process."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Initialize the transfer in the workers."""
        self._call("init_weight_transfer_engine", init_info=init_info)

    def start_weight_update(self) -> None:
        """Prepare the workers for weights."""
        self._call("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """Pass a bucket of weights to the workers."""
        self._call("update_weights", update_info=update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Let the workers finish the update."""
        self._call("finish_weight_update")

    def _call(self, method: str, **arguments: Any) -> None:
        self._engine.collective_rpc(method, kwargs=arguments)


def resolve(kind: str, options: Mapping[str, Any]) -> str:
    """Return the transfer for an engine in this process.

    Args:
        kind: The requested transfer.
        options: Options of the engine.

    Raises:
        ConfigurationError: If the transfer cannot be used for this engine.
    """
    if is_split(options) and world_size() > 1:
        raise ConfigurationError(
            "Each of several processes has one GPU for its engine: tensor_parallel_size and "
            "pipeline_parallel_size must be 1. For a model that does not fit on one GPU, sample "
            "from a server on other GPUs (vllm-server)."
        )
    inside = is_inside(options)
    if kind == "auto":
        return "direct" if inside else ("ipc" if torch.cuda.is_available() else "folder")
    if kind == "direct" and not inside:
        raise ConfigurationError(
            'transfer="direct" needs the engine in this process, on one device: set '
            'VLLM_ENABLE_V1_MULTIPROCESSING=0, or choose "ipc", "nccl" or "folder".'
        )
    if kind not in KINDS:
        raise ConfigurationError(f"transfer must be one of {KINDS}, got {kind!r}.")
    return kind


def is_split(options: Mapping[str, Any]) -> bool:
    """Return whether an engine with these options computes on several devices."""
    sizes = ("tensor_parallel_size", "pipeline_parallel_size")
    return any(options.get(name, 1) != 1 for name in sizes)


def is_inside(options: Mapping[str, Any]) -> bool:
    """Return whether an engine of `VLLMPolicy` with these options computes in this process."""
    alone = os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0"
    return alone and not is_split(options)


def own_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `EngineArgs` that depend on where the engine runs.

    Args:
        options: Options of the engine.
    """
    told: dict[str, Any] = {"seed": rank()}
    return told | ({"distributed_executor_backend": EXECUTOR} if is_inside(options) else {})


def connect(engine: Any, kind: str) -> WeightTransfer:
    """Return the transfer to an `LLMEngine` in this process.

    Raises:
        ConfigurationError: If vLLM has no weight transfer between processes (before 0.28), or lacks
            a private name of it. An engine in this process needs no such transfer.
    """
    if kind == "folder":
        return FolderTransfer(lambda name, given: engine.collective_rpc(name, kwargs=given), None)
    if kind == "direct":
        core = engine.engine_core.engine_core
        return DirectTransfer(core.model_executor.driver_worker.worker)
    check_private_names(SENDER_NAMES)
    return NCCLTransfer(EngineControl(engine), kind, engine.vllm_config.parallel_config.world_size)


class FolderTransfer:
    """Sends weights to a server without a GPU through a folder.

    Args:
        call: Calls a method of the server's workers.
        folder: A folder that the server can read; None is a folder in memory, for a local server.
    """

    broken = False

    def __init__(self, call: Callable[[str, dict[str, str]], Any], folder: Path | None) -> None:
        self._call = call
        self._folder = folder

    def send(self, delivery: WeightUpdate) -> None:
        """Write the weights; let the server read them if they are complete."""
        weights = {name: weight.cpu().contiguous() for name, weight in delivery}
        place = self._folder or _memory_folder(sum(each.nbytes for each in weights.values()))
        with tempfile.TemporaryDirectory(prefix="visenv-weights-", dir=place) as folder:
            if not delivery.problem():
                _unshare(weights)
                path = Path(folder) / "model.safetensors"
                with disk_errors(path):
                    save_file(weights, path)
                self._call("reload_weights", {"weights_path": folder})


def _memory_folder(size: int) -> Path | None:
    """Return a folder in memory with space for some bytes, or None.

    The folder for shared memory of a container may have only 64 MB.
    """
    free = free_bytes(_MEMORY) if _MEMORY.is_dir() else None
    return _MEMORY if free is not None and free > size + _ROOM else None


def _unshare(weights: dict[str, torch.Tensor]) -> None:
    """Give each weight separate memory, which a safetensors file requires of a tied head."""
    seen: set[int] = set()
    for name, weight in weights.items():
        if weight.data_ptr() in seen:
            weights[name] = weight.clone()
        seen.add(weight.data_ptr())
