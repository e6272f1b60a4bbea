"""Defines the contract of a training backend, and the optimizer of all backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from visenv.errors import ConfigurationError
from visenv.policy import Policy, TokenScores, TrainablePolicy, no_gather

from .config import OptimizationConfig

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
