"""Implements group sequence policy optimization (GSPO)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from typing_extensions import override

from visenv.algorithm import Batch

from .base import Clipped, GroupRelative
from .token_loss import TokenLosses, episode_mean, sequence_ratio


@dataclass(frozen=True, kw_only=True)
class GSPO(GroupRelative, Clipped):
    """Minimizes ``1/G Σ_i -min(s_i A_i, clip(s_i, 1 - low, 1 + high) A_i)``.

    ``s_i = (Π_t ρ_it)^(1/|o_i|)`` is the ratio of the sequence, so a sequence is clipped as a
    whole. This ratio varies less than that of a token, so its clip is smaller.
    ``A_i = (r_i - mean) / std`` in the group. The implementation is GSPO-token, which equals GSPO
    if all turns of an episode have the same advantage. An episode of several segments has a ratio
    for each segment, and the mean is taken over the tokens of the episode.

    Source: GSPO (arXiv:2507.18071), equations 5 to 7, 13 and 14; the clip is from section 5.1.
    """

    clip_low: float = 3e-4
    """Distance below 1 at which the ratio is clipped."""
    clip_high: float = 4e-4
    """Distance above 1 at which the ratio is clipped."""

    @override
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the clipped loss with the ratio of the sequence."""
        return self.clipped(sequence_ratio(batch), batch)

    @override
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the mean over episodes of the mean over their tokens."""
        return episode_mean(values, batch)
