"""Updates weights by accelerate: in one process, with data parallelism, or with DeepSpeed."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.policy import Policy, TokenScores, TrainablePolicy, no_gather

from .config import OptimizationConfig
from .distributed import DistributedContext
from .optimizer_shards import Slot, load_shards, save_shard

Accept = Callable[[float], bool]
"""Decides from the gradient norm before clipping whether the step is taken."""


class TrainingBackend(ABC):
    """Holds the module of a policy and its optimizer, prepared by accelerate.

    An optimizer step consists of `begin`; for each micro-batch, inside `micro_batch`, a forward
    pass by calling the backend, and `backward`; and `step`. Every process makes the same calls.
    Gradients are summed over micro-batches and processes.

    Attributes:
        partitioned: Whether each process holds only a part of the weights.
    """

    partitioned: bool = False
    _policy: TrainablePolicy[Any]

    @abstractmethod
    def __call__(self, collated: Any) -> TokenScores:
        """Return the output of the module for a batch of `TrainablePolicy.collate`."""

    @abstractmethod
    def begin(self, learning_rate: float) -> None:
        """Begin an optimizer step."""

    @abstractmethod
    def micro_batch(self, *, last: bool) -> AbstractContextManager[None]:
        """Return a context for the forward and backward pass of one micro-batch of a step."""

    @abstractmethod
    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of a loss of this process to the gradient of the step."""

    @abstractmethod
    def step(self, accept: Accept) -> float:
        """Take the optimizer step if `accept` allows it, and return the norm of the gradient."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the state of the optimizer (`optimizer_shards`). All processes make this call.

        Args:
            folder: The folder for one shard, or for one shard of each process.
        """

    @abstractmethod
    def load(self, folder: Path, policy: Path) -> None:
        """Restore the weights and the optimizer. All processes make this call.

        Args:
            folder: The output of `save`, of any backend and any number of processes.
            policy: The output of `TrainablePolicy.save`.

        Raises:
            RunError: If a file is missing or cannot be read, or contains other parameters.
        """

    def sizes(self) -> dict[str, int]:
        """Return the number of elements of every trained parameter, by its name in the module."""
        return {
            name: int(getattr(parameter, "ds_numel", parameter.numel()))
            for name, parameter in self._policy.module.named_parameters()
            if parameter.requires_grad
        }

    def gather_params(
        self, parameters: Sequence[torch.nn.Parameter]
    ) -> AbstractContextManager[None]:
        """Return a context in which every process holds these parameters completely."""
        return no_gather(parameters)

    def playing(self, player: Policy[Any]) -> AbstractContextManager[None]:
        """Return a context in which `player` samples, in each process independently.

        Args:
            player: The trained policy, whose weights are gathered on every process in the context,
                or an engine with its own copy of the weights.
        """
        return nullcontext()

    def reading(self, policy: TrainablePolicy[Any] | None = None) -> AbstractContextManager[None]:
        """Return a context in which the first process reads all weights (to save them).

        Args:
            policy: The policy whose weights are read; None is the policy that is trained.
        """
        return nullcontext()

    def hold(self, reference: TrainablePolicy[Any]) -> None:  # noqa: B027 - the default does nothing
        """Hold the weights of a frozen policy like the trained weights, until `close`.

        If the weights are partitioned, all processes must call `refer` equally often.
        """

    def refer(self, reference: TrainablePolicy[Any], collated: Any) -> TokenScores:
        """Run a forward pass of a frozen policy on its collated batch, without gradient."""
        with torch.no_grad():
            scores: TokenScores = reference.module(collated)
        return scores

    @abstractmethod
    def close(self) -> None:
        """Unwrap the module of the policy and restore its original state."""


def make_optimizer(
    policy: TrainablePolicy[Any], optimization: OptimizationConfig
) -> torch.optim.AdamW:
    """Return AdamW for the parameters of the policy, with weight decay for matrices only."""
    return torch.optim.AdamW(
        parameter_groups(policy, optimization),
        lr=optimization.learning_rate,
        betas=(optimization.beta1, optimization.beta2),
    )


def parameter_groups(
    policy: TrainablePolicy[Any], optimization: OptimizationConfig
) -> list[dict[str, Any]]:
    """Return the matrices and the vectors of the policy as separate, non-empty groups."""
    parameters = [each for each in policy.parameters() if each.requires_grad]
    if not parameters:
        raise ConfigurationError(
            "A trained policy needs at least one parameter with requires_grad, and this "
            f"{type(policy).__name__} has none: freeze fewer parts of the model."
        )
    matrices = [each for each in parameters if _dimensions(each) >= 2]
    vectors = [each for each in parameters if _dimensions(each) < 2]
    groups = [
        {"params": matrices, "weight_decay": optimization.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _dimensions(parameter: torch.nn.Parameter) -> int:
    """Return the number of dimensions of a parameter, also if DeepSpeed has sharded it.

    DeepSpeed replaces a sharded parameter by an empty vector.
    """
    return len(getattr(parameter, "ds_shape", parameter.shape))


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
