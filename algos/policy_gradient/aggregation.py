"""Aggregates the values of a step's tokens into one number.

Each function gives a micro-batch's share of the step's number: the totals it divides by are those
of the whole step, on all ranks, so the shares add up, however the step was cut. A sequence is a
segment: an episode whose context was replaced on the way counts as several.
"""

from __future__ import annotations

import torch

from visenv.algorithm import Batch


def token_mean(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``Σ_i Σ_t v_it / Σ_i |o_i|``: every token of the step weighs the same (DAPO, eq. 8).

    Args:
        values: float ``[segments, length]``, 0 off the mask.
        batch: Whose mask and totals count.
    """
    return values.sum() / max(batch.total_tokens, 1)


def sequence_mean(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``1/G Σ_i 1/|o_i| Σ_t v_it``, the mean over sequences of their means (GRPO, eq. 3)."""
    lengths = batch.mask.sum(-1).clamp(min=1)  # [segments]
    return (values.sum(-1) / lengths).sum() / max(batch.total_segments, 1)


def sequence_sum(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``1/G Σ_i Σ_t v_it``, the mean over sequences of their sums (REINFORCE)."""
    return values.sum() / max(batch.total_segments, 1)
