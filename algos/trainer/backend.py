"""The update of weights, through accelerate: by one process, by replicas, or by DeepSpeed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
"""Gets the norm of the gradient, before clipping; returns whether to take the step."""


class TrainingBackend(ABC):
    """A policy's module and its optimizer, prepared by accelerate.

    An optimizer step is: `begin`; for each micro-batch, inside `micro_batch`, a forward pass by
    calling the backend, and `backward`; then `step`. Every process makes the same calls; gradients
    are added up over micro-batches and processes.

    Attributes:
        partitioned: Whether a process holds but a part of the weights.
    """

    partitioned: bool = False
    _policy: TrainablePolicy[Any]

    @abstractmethod
    def __call__(self, collated: Any) -> TokenScores:
        """Return the module's output for a batch that `TrainablePolicy.collate` made."""

    @abstractmethod
    def begin(self, learning_rate: float) -> None:
        """Begin an optimizer step."""

    @abstractmethod
    def micro_batch(self, *, last: bool) -> AbstractContextManager[None]:
        """Return a context for the forward and backward pass of one micro-batch of a step."""

    @abstractmethod
    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of a loss of this process."""

    @abstractmethod
    def step(self, accept: Accept) -> float:
        """Change the weights, if `accept` allows it; the norm of the gradient."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the state of the optimizer (`optimizer_shards`); all processes together.

        Args:
            folder: Gets one shard, or one of each process.
        """

    @abstractmethod
    def load(self, folder: Path, policy: Path) -> None:
        """Put weights and optimizer back to where they were; all processes together.

        Args:
            folder: What `save` wrote, in any number of processes and by any backend.
            policy: What `TrainablePolicy.save` wrote.

        Raises:
            RunError: If a file is missing or cannot be read, or is of other parameters.
        """

    def sizes(self) -> dict[str, int]:
        """Return the number of elements of every trained parameter, by its name in the module."""
        return {
            name: int(getattr(parameter, "ds_numel", parameter.numel()))
            for name, parameter in self._policy.module.named_parameters()
            if parameter.requires_grad
        }

    def whole(self, parameters: Sequence[torch.nn.Parameter]) -> AbstractContextManager[None]:
        """Return a context in which these parameters are whole on every process."""
        return no_gather(parameters)

    def playing(self, player: Policy[Any]) -> AbstractContextManager[None]:
        """Return a context in which `player` samples, each process on its own.

        Args:
            player: The trained policy, whose weights are then whole on every process, or an engine
                with weights of its own.
        """
        return nullcontext()

    def reading(self, policy: TrainablePolicy[Any] | None = None) -> AbstractContextManager[None]:
        """Return a context in which the first process reads all weights (to save them).

        Args:
            policy: Whose weights; None is the policy that is trained.
        """
        return nullcontext()

    def hold(self, reference: TrainablePolicy[Any]) -> None:  # noqa: B027 - as it is found
        """Hold the weights of a frozen policy as those of the trained one are held, until `close`.

        Where they are in parts, all processes must call `refer` equally often.
        """

    def refer(self, reference: TrainablePolicy[Any], collated: Any) -> TokenScores:
        """Run a frozen policy forward on what its `collate` gave, without gradient."""
        with torch.no_grad():
            scores: TokenScores = reference.module(collated)
        return scores

    @abstractmethod
    def close(self) -> None:
        """Leave the policy's module as if nothing had ever wrapped it."""


def make_optimizer(
    policy: TrainablePolicy[Any], optimization: OptimizationConfig
) -> torch.optim.AdamW:
    """Return AdamW for the policy's parameters; only matrices have weight decay."""
    return torch.optim.AdamW(
        parameter_groups(policy, optimization),
        lr=optimization.learning_rate,
        betas=(optimization.beta1, optimization.beta2),
    )


def parameter_groups(
    policy: TrainablePolicy[Any], optimization: OptimizationConfig
) -> list[dict[str, Any]]:
    """Return the policy's matrices and vectors as separate groups, none of which is empty."""
    parameters = [each for each in policy.parameters() if each.requires_grad]
    if not parameters:
        raise ConfigurationError("The policy has no parameter that may be trained.")
    matrices = [each for each in parameters if _dimensions(each) >= 2]
    vectors = [each for each in parameters if _dimensions(each) < 2]
    groups = [
        {"params": matrices, "weight_decay": optimization.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _dimensions(parameter: torch.nn.Parameter) -> int:
    """Return the dimensions of a parameter; of one in shards DeepSpeed leaves an empty vector."""
    return len(getattr(parameter, "ds_shape", parameter.shape))


class DDPBackend(TrainingBackend):
    """Holds all weights in every process: one alone, or several whose gradients are averaged.

    Args:
        policy: Whose weights change.
        optimization: How they change.
        processes: Who takes part.
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
        """Exchange gradients between replicas in the last micro-batch only."""
        if last:
            return nullcontext()
        context: AbstractContextManager[None] = self._processes.accelerator.no_sync(self._module)
        return context

    @override
    def backward(self, loss: torch.Tensor) -> None:
        """Compute gradients; the loss is scaled by the number of replicas, which average them."""
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
        """Write AdamW's moments, which are the same in every process."""
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
            f"The policy of process {processes.rank} is on {parameter.device}; each process has a "
            f"device of its own, here {expected}: make it with device={str(expected)!r}."
        )


def make_backend(
    policy: TrainablePolicy[Any], optimization: OptimizationConfig, processes: DistributedContext
) -> TrainingBackend:
    """Return the backend that this process was launched for."""
    if processes.accelerator.distributed_type == DistributedType.DEEPSPEED:
        from .zero import ZeroBackend

        return ZeroBackend(policy, optimization, processes)
    return DDPBackend(policy, optimization, processes)


@contextmanager
def preparing(
    policy: TrainablePolicy[Any], optimization: OptimizationConfig, processes: DistributedContext
) -> Iterator[TrainingBackend]:
    """Yield the backend of `make_backend`, and close it at the end."""
    backend = make_backend(policy, optimization, processes)
    try:
        yield backend
    finally:
        backend.close()
