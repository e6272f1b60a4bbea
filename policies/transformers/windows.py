"""Implements attention of the vision tower: windows or images of equal size form one batch.

Qwen2.5-VL attends within windows of 8 by 8 patches in most layers. Windows at the right and lower
edges are smaller, so that there are only a few sizes. Qwen3-VL attends within whole images.
transformers itself calls PyTorch's attention once for each window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
import transformers

WINDOWS = "visenv_flash_windows"
"""Name of `attend_windows` in transformers.

transformers passes the borders of windows to implementations with "flash" in their name; others are
called for each window.
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
    """Compute attention within windows that lie end to end.

    Args:
        module: The attention layer.
        query: ``[1, heads, patches, size]``.
        key: Same shape as `query`.
        value: Same shape as `query`.
        attention_mask: None.
        scaling: Factor of the scores before the softmax.
        cu_seq_lens_q: int ``[windows + 1]``: start index of each window, and the end of the last
            one. None is one window; versions of transformers that pass borders only to their own
            implementations call it like this.
        options: Further arguments of transformers.

    Returns:
        ``[1, patches, heads, size]``.
    """
    lengths = [query.shape[2]] if cu_seq_lens_q is None else cu_seq_lens_q.diff().tolist()
    # For each window, [1, heads, length, size].
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
    # [length, heads, size] of each window, concatenated: [1, patches, heads, size].
    return torch.cat([attended[window] for window in range(len(lengths))])[None], None


transformers.AttentionInterface.register(WINDOWS, attend_windows)


def _equal(lengths: Iterable[int]) -> list[list[int]]:
    """Return the indices of the windows of each distinct length."""
    places: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        places.setdefault(length, []).append(place)
    return list(places.values())
