"""Keys and values of a batch whose rows are of different lengths.

Each row's tokens lie in slots of its own, token ``i`` in slot ``i``: nothing is padded on the left,
nothing moves when a token is added, and what padding on the right leaves in a slot is written over
before any later token can see it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

_GROWTH = 64


class SlotCache:
    """Provides the `update` that the attention layers of transformers call.

    Args:
        rows: Rows of the batch.
        layers: Attention layers.
        heads: Key-value heads.
        head_size: Width of a head.
        like: Gives device and dtype.
    """

    def __init__(
        self, rows: int, layers: int, heads: int, head_size: int, like: torch.Tensor
    ) -> None:
        # Slots of one head side by side: attention over a new token then reads memory in order.
        self._data = like.new_zeros((layers, 2, rows, heads, 0, head_size))
        self._rows = torch.arange(rows, device=like.device)[:, None]  # [rows, 1]
        self._slots = self._rows
        self._used = 0

    def reserve(self, slots: int) -> None:
        """Make room for that many slots in each row."""
        layers, two, rows, heads, present, size = self._data.shape
        if slots > present:
            # Zeros, not garbage: a masked slot weighs 0, and 0 times NaN would still be NaN.
            grown = self._data.new_zeros((layers, two, rows, heads, slots + _GROWTH, size))
            grown[:, :, :, :, :present] = self._data
            self._data = grown

    def place(self, slots: torch.Tensor, used: int) -> None:
        """Say where the next tokens go.

        Args:
            slots: int64 ``[rows, tokens]``.
            used: Slots that any row may look at, each written or masked.
        """
        self.reserve(used)
        self._slots = slots
        self._used = used

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer_idx: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store keys and values ``[rows, heads, tokens, head size]``; return all that are used."""
        keys, values = self._data[layer_idx]  # [rows, heads, slots, head size]
        # Indexed by [rows, 1] and [rows, tokens], around a slice: [rows, tokens, heads, head size].
        keys[self._rows, :, self._slots] = key.transpose(1, 2)
        values[self._rows, :, self._slots] = value.transpose(1, 2)
        return keys[:, :, : self._used], values[:, :, : self._used]

    def store(self, row: int, memory: torch.Tensor) -> None:
        """Fill a row's first slots, already reserved, from what `memory` gave."""
        self._data[:, :, row, :, : memory.shape[3]] = memory

    def memory(self, row: int, tokens: int) -> torch.Tensor:
        """Return a copy of a row's first slots, ``[layers, 2, heads, tokens, head size]``."""
        return self._data[:, :, row, :, :tokens].clone()

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; a row may be repeated."""
        index = torch.tensor(rows, device=self._data.device)
        self._data = self._data.index_select(2, index)
        self._rows = torch.arange(len(rows), device=index.device)[:, None]  # [rows, 1]
