"""Caches keys and values of a batch whose rows have different lengths.

Each row has its own slots, with token ``i`` in slot ``i``: there is no padding on the left, and
adding a token moves no other token. Padding on the right writes to slots that are overwritten
before a later token attends to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_GROWTH = 64

CACHE_NAMES = ("cache", "past_key_values")
"""Names of the argument and of the result with the cache; transformers 5.24 renamed them."""


class SlotCache:
    """Provides the method `update`, which the attention layers of transformers call.

    Args:
        rows: Rows of the batch.
        layers: Number of attention layers.
        heads: Number of key-value heads.
        head_size: Width of a head.
        like: A tensor with the device and dtype of the cache.
    """

    def __init__(
        self, rows: int, layers: int, heads: int, head_size: int, like: torch.Tensor
    ) -> None:
        # The slots of a head are adjacent, so that attention over a new token reads memory in
        # order.
        self._data = like.new_zeros((layers, 2, rows, heads, 0, head_size))
        self._rows = torch.arange(rows, device=like.device)[:, None]  # [rows, 1]
        self._slots = self._rows
        self._used = 0

    def reserve(self, slots: int) -> None:
        """Allocate that many slots in each row."""
        layers, two, rows, heads, present, size = self._data.shape
        if slots > present:
            # Zeros, because the weight of a masked slot is 0, and 0 times NaN would be NaN.
            grown = self._data.new_zeros((layers, two, rows, heads, slots + _GROWTH, size))
            grown[:, :, :, :, :present] = self._data
            self._data = grown

    def place(self, slots: torch.Tensor, used: int) -> None:
        """Set the slots of the next tokens.

        Args:
            slots: int64 ``[rows, tokens]``.
            used: Number of slots that rows may attend to, each written or masked.
        """
        self.reserve(used)
        self._slots = slots
        self._used = used

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer_idx: int, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store keys and values ``[rows, heads, tokens, head size]``.

        Return those of all used slots. `options` are further arguments of transformers, which only
        its own caches need.
        """
        keys, values = self._data[layer_idx]  # [rows, heads, slots, head size]
        # Indexed by [rows, 1] and [rows, tokens], around a slice: [rows, tokens, heads, head size].
        keys[self._rows, :, self._slots] = key.transpose(1, 2)
        values[self._rows, :, self._slots] = value.transpose(1, 2)
        return keys[:, :, : self._used], values[:, :, : self._used]

    def store(self, row: int, memory: torch.Tensor) -> None:
        """Fill the first slots of a row, which must be reserved, with a result of `memory`."""
        self._data[:, :, row, :, : memory.shape[3]] = memory

    def memory(self, row: int, tokens: int) -> torch.Tensor:
        """Return a copy of a row's first slots, ``[layers, 2, heads, tokens, head size]``."""
        return self._data[:, :, row, :, :tokens].clone()

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; a row may be repeated."""
        index = torch.tensor(rows, device=self._data.device)
        self._data = self._data.index_select(2, index)
        self._rows = torch.arange(len(rows), device=index.device)[:, None]  # [rows, 1]
