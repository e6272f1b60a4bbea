"""Implements SFT as an `Algorithm` in which every episode has an advantage of 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from visenv.algorithm import Algorithm, Batch, Loss
from visenv.types import Group


@dataclass(frozen=True)
class SFT(Algorithm):
    """Minimizes the mean negative log-likelihood over the tokens of the policy in a step."""

    @override
    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """Return 1 for every episode."""
        return [[np.ones(())] * len(group) for group in groups]

    @override
    def loss(self, batch: Batch) -> Loss:
        """Return ``-sum(A log p) / tokens`` with A = 1, and the mean ``entropy`` in nats."""
        zero = batch.logprobs.new_zeros(())
        logprobs, advantages, entropy = (
            torch.where(batch.mask, each, zero)
            for each in (batch.logprobs, batch.advantages, batch.entropy)
        )
        tokens = max(batch.total_tokens, 1)
        return Loss(
            -(logprobs * advantages).sum() / tokens, {"entropy": float(entropy.sum()) / tokens}
        )
