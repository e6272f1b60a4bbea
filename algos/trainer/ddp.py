"""Updates weights in one process or with data parallelism, and selects the backend of a run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.policy import TokenScores, TrainablePolicy

from .backend import Accept, TrainingBackend, make_optimizer
from .config import OptimizationConfig
from .distributed import DistributedContext
from .optimizer_shards import Slot, load_shards, save_shard


class DDPBackend(TrainingBackend):
    """Holds all weights in every process, and averages the gradients of several processes.

    Args:
        policy: The policy that is trained.
        optimization: The settings of the optimizer.
        processes: The processes of the run.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        optimization: OptimizationConfig,
        processes: DistributedContext,
    ) -> None:
        self._policy = policy
        self._processes = processes
        self._max_grad_norm = optimization.max_grad_norm
        optimizer = make_optimizer(policy, optimization)
        self._parameters = [each for group in optimizer.param_groups for each in group["params"]]
        _check_dtype(self._parameters)
        _check_device(self._parameters[0], processes)
        with warnings.catch_warnings():
            # accelerate 1.15 has no other name for `broadcast_buffers`, which PyTorch deprecates.
            warnings.filterwarnings("ignore", "`broadcast_buffers`", FutureWarning)
            self._module, self._optimizer = processes.accelerator.prepare(policy.module, optimizer)

    @override
    def __call__(self, collated: Any) -> TokenScores:
        scores: TokenScores = self._module(collated)
        return scores

    @override
    def begin(self, learning_rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.zero_grad()

    @override
    def micro_batch(self, *, last: bool) -> AbstractContextManager[None]:
        """Synchronize gradients between processes only in the last micro-batch."""
        if last:
            return nullcontext()
        context: AbstractContextManager[None] = self._processes.accelerator.no_sync(self._module)
        return context

    @override
    def backward(self, loss: torch.Tensor) -> None:
        """Compute gradients of the loss times the number of processes, which average them."""
        if self._processes.count > 1:
            loss = loss * self._processes.count
        self._processes.accelerator.backward(loss)

    @override
    def step(self, accept: Accept) -> float:
        clip = self._processes.accelerator.clip_grad_norm_
        norm = float(clip(self._parameters, self._max_grad_norm).item())
        if accept(norm):
            self._optimizer.step()
        return norm

    @override
    def save(self, folder: Path) -> None:
        """Write the moments of AdamW, which are the same in every process."""
        if self._processes.first:
            save_shard(folder, self._slots(), self._optimizer.optimizer, 0, 1)

    @override
    def load(self, folder: Path, policy: Path) -> None:
        self._policy.load_weights(policy)
        load_shards(folder, self._slots(), self._optimizer.optimizer, self.sizes())

    def _slots(self) -> list[Slot]:
        return [
            Slot(name, 0, parameter.numel(), parameter, 0)
            for name, parameter in self._policy.module.named_parameters()
            if parameter.requires_grad
        ]

    @override
    def close(self) -> None:
        self._processes.accelerator.free_memory()


def _check_dtype(parameters: Sequence[torch.nn.Parameter]) -> None:
    narrow = {each.dtype for each in parameters if each.dtype.itemsize < 4}
    if narrow:
        raise ConfigurationError(
            f"The trained weights are {', '.join(sorted(map(str, narrow)))}: small updates would "
            "be rounded away. Keep them in float32, or launch with configs/zero2.yaml (one process "
            "is enough), where the optimizer holds a float32 copy."
        )


def _check_device(parameter: torch.nn.Parameter, processes: DistributedContext) -> None:
    expected = processes.accelerator.device
    places = {(each.type, each.index or 0) for each in (parameter.device, expected)}
    if processes.count > 1 and len(places) > 1:
        raise ConfigurationError(
            f"The policy of process {processes.rank} is on {parameter.device}, but the device of "
            f"this process is {expected}: create the policy with device={str(expected)!r}."
        )


def make_backend(
    policy: TrainablePolicy[Any], optimization: OptimizationConfig, processes: DistributedContext
) -> TrainingBackend:
    """Return the backend of the configuration with which this process was launched."""
    if processes.accelerator.distributed_type == DistributedType.DEEPSPEED:
        from .zero import ZeroBackend

        return ZeroBackend(policy, optimization, processes)
    return DDPBackend(policy, optimization, processes)
