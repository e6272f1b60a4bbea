"""Implements attention over packed trees, and attention within windows of the vision tower.

In a packed tree, each segment attends as it would alone. A packed row contains many streams end to
end, one for each node of its prefix trees. A stream attends to the keys of its ancestors, and
causally to its own. No mask over the whole row is made: the row is split into calls, each a batch
of streams with the same ancestors.

Reference: Hydragen (Juravsky et al., 2024, arXiv 2402.05099) splits attention at a shared prefix
for decoding; here both parts stay in one softmax, so that PyTorch computes the gradient.

`attend_windows` computes the attention of the vision tower. Windows or images of equal size form
one batch. Qwen2.5-VL attends within windows of 8 by 8 patches in most layers. Windows at the right
and lower edges are smaller, so that there are only a few sizes. Qwen3-VL attends within whole
images. transformers itself calls PyTorch's attention once for each window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import transformers
from torch.nn.attention.bias import causal_lower_right

ATTENTION = "visenv"
"""Name of `attend` in transformers."""

_SDPA = transformers.AttentionInterface()["sdpa"]
"""The function with which transformers calls PyTorch's attention."""

_ALIKE = 0.75
"""In one call, the shortest stream has at least this share of the longest stream's tokens."""

WINDOWS = "visenv_flash_windows"
"""Name of `attend_windows` in transformers.

transformers passes the borders of windows to implementations with "flash" in their name; others are
called for each window.
"""


class AttentionCall(NamedTuple):
    """Describes streams that attend together; streams and calls lie end to end in the packed row.

    Attributes:
        lengths: Number of tokens of each stream.
        before: Indices of the streams to which each of them attends before its own tokens, from the
            root of the tree; streams are numbered along the row.
    """

    lengths: tuple[int, ...]
    before: tuple[int, ...] = ()


def alike(lengths: Sequence[int]) -> list[list[int]]:
    """Return batches of streams of similar length, longest first, as indices of `lengths`."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not batches or lengths[index] < _ALIKE * lengths[batches[-1][0]]:
            batches.append([])
        batches[-1].append(index)
    return batches


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    layout: Sequence[AttentionCall] | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Return the attention of the language model, for sampling and for scoring.

    Args:
        module: The attention layer.
        query: ``[rows, heads, tokens, size]``.
        key: ``[rows, key-value heads, slots, size]``.
        value: Same shape as `key`.
        attention_mask: The slots to which a token attends; None is causal.
        scaling: Factor of the scores before the softmax.
        layout: The calls of a packed row; if given, there is one row.
        options: Further arguments of transformers.

    Returns:
        ``[rows, tokens, heads, size]``.
    """
    if layout is not None:
        return _packed(query, key, value, layout, scaling), None
    if query.device.type != "cpu":
        # PyTorch's kernels for masks do not support grouped heads; transformers copies the heads
        # here.
        attended, _ = _SDPA(module, query, key, value, attention_mask, scaling=scaling, **options)
        return attended, None
    # Key-value heads stay shared: with a mask, transformers would copy them for each query head,
    # which on a CPU costs several times the attention of one new token.
    attended = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        is_causal=attention_mask is None and query.shape[2] > 1,
        scale=scaling,
        enable_gqa=True,
    )
    return attended.transpose(1, 2).contiguous(), None  # [rows, tokens, heads, size]


transformers.AttentionInterface.register(ATTENTION, attend)


def _packed(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    layout: Sequence[AttentionCall],
    scaling: float | None,
) -> torch.Tensor:
    """Return the attention of the tokens of a packed row, ``[1, tokens, heads, size]``.

    The row is split into its streams once, so that their gradients are concatenated once and not
    added to a whole row for each stream.
    """
    lengths = [length for call in layout for length in call.lengths]
    # Tokens come first, so that a stream is a slice of them: [1, heads, tokens, size] becomes
    # [tokens, heads, size].
    query, key, value = (each[0].transpose(0, 1) for each in (query, key, value))
    queries = query.split(lengths)  # of each stream [length, heads, size]
    keys, values = key.split(lengths), value.split(lengths)  # [length, key-value heads, size]
    attended: list[torch.Tensor] = []
    first = 0
    for call in layout:
        own = slice(first, first + len(call.lengths))
        seen_keys = _seen([keys[stream] for stream in call.before], keys[own])
        seen_values = _seen([values[stream] for stream in call.before], values[own])
        attended += _call(_batch(queries[own]), seen_keys, seen_values, call.lengths, scaling)
        first = own.stop
    return torch.cat(attended)[None]  # [1, tokens, heads, size]


def _call(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    lengths: Sequence[int],
    scaling: float | None,
) -> list[torch.Tensor]:
    """Return the attention of the tokens of each stream, ``[length, heads, size]``.

    Streams are padded on the right, to which causal attention does not attend.

    Args:
        queries: ``[streams, longest, heads, size]``.
        keys: ``[streams, before + longest, key-value heads, size]``.
        values: Same shape as `keys`.
        lengths: Number of tokens of each stream.
        scaling: Factor of the scores before the softmax.
    """
    attended = F.scaled_dot_product_attention(
        queries.transpose(1, 2),  # [streams, heads, longest, size]
        keys.transpose(1, 2),  # [streams, key-value heads, before + longest, size]
        values.transpose(1, 2),  # [streams, key-value heads, before + longest, size]
        attn_mask=causal_lower_right(queries.shape[1], keys.shape[1]),
        scale=scaling,
        enable_gqa=True,
    ).transpose(1, 2)  # [streams, longest, heads, size]
    # [longest, heads, size] of each stream, without its padding.
    return [each[:length] for each, length in zip(attended.unbind(), lengths, strict=True)]


def _seen(before: Sequence[torch.Tensor], own: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return keys or values of streams, ``[streams, before + longest, heads, size]``."""
    batch = _batch(own)  # [streams, longest, heads, size]
    if not before:
        return batch
    shared = torch.cat([*before])  # [before, heads, size]
    shared = shared.expand(len(own), -1, -1, -1)  # [streams, before, heads, size], not copied
    return torch.cat([shared, batch], 1)  # [streams, before + longest, heads, size]


def _batch(streams: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return streams ``[length, heads, size]`` as ``[streams, longest, heads, size]``.

    `pad_sequence` writes each stream into the batch, and its gradient copies the batch for each
    stream. The gradient of `pad` is a slice.
    """
    longest = max(len(stream) for stream in streams)
    padded = [F.pad(stream, (0, 0, 0, 0, 0, longest - len(stream))) for stream in streams]
    return torch.stack(padded)  # [streams, longest, heads, size]


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
    queries, keys, values = (tensor.split(lengths, 2) for tensor in (query, key, value))
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
