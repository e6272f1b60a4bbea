"""Defines the interface of an algorithm: two pure functions that any trainer can call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visenv.types import Group

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Batch:
    """Holds some segments of one optimizer step, as tensors.

    A step may be split into several batches. `total_tokens` and `total_episodes` are the counts of
    the whole step, so that the losses of its batches add up to the loss of the step. An episode
    whose context was replaced has several segments, possibly in different batches.

    Attributes:
        logprobs: float ``[segments, length]``, under the current weights, with gradient.
        old_logprobs: float ``[segments, length]``, under the weights at the start of the step, as
            the trainer computes them: the denominator of the probability ratio.
        sampling_logprobs: float ``[segments, length]``, as the sampler reported them. The sampler
            may be another engine with other rounding, or may have older weights. If the trainer
            does not compute `old_logprobs` itself, both are equal.
        reference_logprobs: float ``[segments, length]``, or None if there is no reference model.
        entropy: float ``[segments, length]``, nats, without gradient.
        advantages: float ``[segments, length]``.
        mask: bool ``[segments, length]``, True for sampled tokens; all other tokens are ignored.
        episode_tokens: int64 ``[segments]``, the number of sampled tokens in all segments of the
            episode of each segment.
        total_tokens: Number of sampled tokens in the whole step.
        total_episodes: Number of episodes in the whole step.
    """

    logprobs: torch.Tensor
    old_logprobs: torch.Tensor
    sampling_logprobs: torch.Tensor
    reference_logprobs: torch.Tensor | None
    entropy: torch.Tensor
    advantages: torch.Tensor
    mask: torch.Tensor
    episode_tokens: torch.Tensor
    total_tokens: int
    total_episodes: int


@dataclass(frozen=True, slots=True)
class Loss:
    """Holds the return value of `Algorithm.loss`.

    Attributes:
        value: float ``[]``, with gradient; the part of the step's loss that this batch contributes.
        metrics: Numbers to log. Each is the part that this batch contributes; the numbers of all
            batches of the step add up.
    """

    value: torch.Tensor
    metrics: dict[str, float]


class Algorithm(ABC):
    """Computes advantages and a loss; subclasses implement these two methods.

    Attributes:
        needs_reference: Whether the algorithm needs `Batch.reference_logprobs`.
    """

    needs_reference: bool = False

    @abstractmethod
    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """Return the advantage of every episode, group by group.

        Args:
            groups: Groups of episodes; a group has episodes of one sample, without aborted
                episodes.

        Returns:
            For each group, for each episode, an array of shape ``[]`` (one advantage for all its
            sampled tokens) or ``[turns]`` (one for each turn).
        """

    @abstractmethod
    def loss(self, batch: Batch) -> Loss:
        """Return the loss to minimize, as a pure function of the batch."""
