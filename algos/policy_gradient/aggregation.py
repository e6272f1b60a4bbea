"""Aggregates the values of the tokens of a step into one number.

Each function returns the contribution of a micro-batch. It divides by totals of the whole step on
all ranks, so the contributions add up to the same number for any division into micro-batches.

In the formulas, ``o_i`` are the sampled tokens of an episode. An episode whose context was replaced
has several segments, and they share the weight of the episode. If each segment had the weight of an
episode, long episodes would outweigh short ones.
"""

from __future__ import annotations

import torch

from visenv.algorithm import Batch


def token_mean(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``Σ_i Σ_t v_it / Σ_i |o_i|``, the mean over all tokens of the step (DAPO, eq. 8).

    Args:
        values: float ``[segments, length]``, 0 outside the mask.
        batch: The batch with the mask and the totals.
    """
    return values.sum() / max(batch.total_tokens, 1)


def episode_mean(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``1/G Σ_i 1/|o_i| Σ_t v_it``, the mean over episodes of their means (GRPO, eq. 3)."""
    means = values.sum(-1) / batch.episode_tokens.clamp(min=1)  # [segments]
    return means.sum() / max(batch.total_episodes, 1)


def episode_sum(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``1/G Σ_i Σ_t v_it``, the mean over episodes of their sums (REINFORCE)."""
    return values.sum() / max(batch.total_episodes, 1)
