"""Computes log-probabilities of sampled tokens under the current weights, with gradient."""

from __future__ import annotations

import torch
from typing_extensions import override

from visenv.policy import TokenScores

from .network import QwenVLParts
from .pack import PackedBatch
from .vision import BLANK


class ScoringModule(torch.nn.Module):
    """Wraps the network as a module whose forward pass computes scores.

    Args:
        network: The model's parts.
    """

    def __init__(self, network: QwenVLParts) -> None:
        super().__init__()
        self.model = network.model
        self._network = network

    @override
    def forward(self, packed: PackedBatch) -> TokenScores:
        """Return the log-probabilities of the sampled tokens of a batch made by `collate`."""
        network = self._network
        device = network.device
        seen = network.vision.look(packed.images, in_step=True)
        hidden = network.read(
            packed.token_ids.to(device, non_blocking=True),
            packed.positions.to(device, non_blocking=True),
            [seen[span.sha256].of(span) for span in packed.shown],
            layout=packed.layout,
        )
        before = packed.before.to(device, non_blocking=True)
        before = hidden[0].index_select(0, before)  # [places, width]
        picked, entropy = network.head(before, packed.places.to(device))  # [places] each
        if BLANK in seen:
            picked = picked + seen[BLANK].none_of_it()
        return in_rows(picked, entropy, packed.mask.to(device, non_blocking=True))


def in_rows(picked: torch.Tensor, entropy: torch.Tensor, mask: torch.Tensor) -> TokenScores:
    """Return the scores of sampled tokens at their places in the segments, 0 elsewhere.

    Args:
        picked: The log-probabilities of the sampled tokens, segment by segment, ``[places]``.
        entropy: The entropies of their distributions, ``[places]``.
        mask: bool ``[segments, length]``, whose True cells, row by row, are the places.
    """
    zeros = picked.new_zeros(mask.shape)
    return TokenScores(
        zeros.masked_scatter(mask, picked), zeros.masked_scatter(mask, entropy), mask
    )
