"""The Algorithm contract: two pure functions, a page each, that any trainer can run."""

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

    A step may be cut into several batches; `total_tokens` and `total_segments` count the whole
    step, so that losses of its batches add up to the loss of the step.

    Attributes:
        logprobs: float ``[segments, length]``, under the present weights, with gradient.
        old_logprobs: float ``[segments, length]``, under the weights the step began with, as the
            trainer computes them: the denominator of the probability ratio.
        sampling_logprobs: float ``[segments, length]``, as the sampler reported them, maybe another
            engine with other rounding, or older weights; equal to `old_logprobs` where the trainer
            did not compute those itself.
        reference_logprobs: float ``[segments, length]``, or None when no reference is kept.
        entropy: float ``[segments, length]``, nats, without gradient.
        advantages: float ``[segments, length]``.
        mask: bool ``[segments, length]``, True for sampled tokens; all else is ignored.
        total_tokens: Sampled tokens in the whole step.
        total_segments: Segments in the whole step.
    """

    logprobs: torch.Tensor
    old_logprobs: torch.Tensor
    sampling_logprobs: torch.Tensor
    reference_logprobs: torch.Tensor | None
    entropy: torch.Tensor
    advantages: torch.Tensor
    mask: torch.Tensor
    total_tokens: int
    total_segments: int


@dataclass(frozen=True, slots=True)
class Loss:
    """Holds what `Algorithm.loss` returns.

    Attributes:
        value: float ``[]``, with gradient; the batch's share of the step's loss.
        metrics: Plain numbers to log; each the batch's share, so that shares add up.
    """

    value: torch.Tensor
    metrics: dict[str, float]


class Algorithm(ABC):
    """Defines group credit and a loss: write these two methods and pass an instance to the trainer.

    Attributes:
        needs_reference: Whether `Batch.reference_logprobs` must be filled.
    """

    needs_reference: bool = False

    @abstractmethod
    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """Return the advantage of every episode, group by group.

        Args:
            groups: Episodes of one sample each, aborted ones already left out.

        Returns:
            For each group, for each episode, an array of shape ``[]`` (one advantage for all its
            sampled tokens) or ``[turns]`` (one for each turn).
        """

    @abstractmethod
    def loss(self, batch: Batch) -> Loss:
        """Return the loss to minimize; a pure function of the batch."""
