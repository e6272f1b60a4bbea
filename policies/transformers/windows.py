"""Attention of the vision tower: windows, or images, of equal size attend as one batch.

Qwen2.5-VL attends within windows of 8 by 8 patches in most layers; windows at the right and lower
edges are smaller, so there are at most a few sizes. Qwen3-VL attends within whole images.
transformers calls PyTorch's attention once for each window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
import transformers

WINDOWS = "visenv_flash_windows"
"""The name under which transformers knows `attend_windows`.

transformers hands the borders of windows to implementations with "flash" in their name; for others
it calls the implementation for each window.
"""


def attend_windows(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attend within windows that lie end to end.

    Args:
        module: The attention layer.
        query: ``[1, heads, patches, size]``.
        key: As `query`.
        value: As `query`.
        attention_mask: None.
        scaling: Of the scores before the softmax.
        cu_seq_lens_q: int ``[windows + 1]``: where each window begins, and the end of the last.
            None is one window: so do versions of transformers call it that pass borders to their
            own implementations alone.
        options: What else transformers passes.

    Returns:
        ``[1, patches, heads, size]``.
    """
    lengths = [query.shape[2]] if cu_seq_lens_q is None else cu_seq_lens_q.diff().tolist()
    # Of each window [1, heads, length, size].
    queries, keys, values = (each.split(lengths, 2) for each in (query, key, value))
    attended: dict[int, torch.Tensor] = {}
    for windows in _equal(lengths):
        found = F.scaled_dot_product_attention(
            torch.cat([queries[window] for window in windows]),  # [windows, heads, length, size]
            torch.cat([keys[window] for window in windows]),  # [windows, heads, length, size]
            torch.cat([values[window] for window in windows]),  # [windows, heads, length, size]
            scale=scaling,
        ).transpose(1, 2)  # [windows, length, heads, size]
        attended.update(zip(windows, found.unbind(), strict=True))
    # [length, heads, size] of each window, end to end: [1, patches, heads, size].
    return torch.cat([attended[window] for window in range(len(lengths))])[None], None


transformers.AttentionInterface.register(WINDOWS, attend_windows)


def _equal(lengths: Iterable[int]) -> list[list[int]]:
    """Return the indices of each distinct length."""
    places: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        places.setdefault(length, []).append(place)
    return list(places.values())
