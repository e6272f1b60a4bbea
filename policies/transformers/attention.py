"""Attention over packed trees: each segment sees exactly what it would see alone.

A packed row holds many streams end to end. What several segments share is read once, causally; each
segment's remainder sees the shared keys and its own. No mask over the whole row is ever made: the
row is cut into calls, each a batch of streams that attend alike.

Reference: Hydragen (Juravsky et al., 2024, arXiv 2402.05099) splits attention at a shared prefix
for decoding; here both halves stay in one softmax, so that the gradient is PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import transformers
from torch.nn.attention.bias import causal_lower_right
from torch.nn.utils.rnn import pad_sequence

ATTENTION = "visenv"
"""The name under which transformers knows `attend`."""

_SDPA = transformers.AttentionInterface()["sdpa"]
"""What transformers itself uses for PyTorch's attention."""

_ALIKE = 0.75
"""In one call the shortest stream has at least this share of the longest's tokens."""


class Call(NamedTuple):
    """Streams that attend together; they lie end to end in the packed row.

    Attributes:
        start: The first stream's first token.
        lengths: Tokens of each stream.
        shared: First and last (exclusive) of the tokens that every stream sees before its own.
    """

    start: int
    lengths: tuple[int, ...]
    shared: tuple[int, int] = (0, 0)


def alike(lengths: Sequence[int]) -> list[list[int]]:
    """Batches of streams of like length, the longest first: indices of `lengths`, each once."""
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
    layout: Sequence[Call] | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """The attention of the language model, for sampling and for scoring.

    Args:
        module: The attention layer.
        query: ``[rows, heads, tokens, size]``.
        key: ``[rows, key-value heads, slots, size]``.
        value: As `key`.
        attention_mask: Which slots a token sees; None is causal.
        scaling: Of the scores before the softmax.
        layout: Given, there is one row, and it is packed.
        options: What else transformers passes.

    Returns:
        ``[rows, tokens, heads, size]``.
    """
    if layout is not None:
        return _packed(query, key, value, layout, scaling), None
    if query.device.type != "cpu":
        # Its kernels for masks know no grouped heads; transformers copies them there.
        attended, _ = _SDPA(module, query, key, value, attention_mask, scaling=scaling, **options)
        return attended, None
    # Shared key-value heads left shared: on a CPU the copy that transformers makes for each query
    # head where there is a mask costs several times the attention of one new token.
    attended = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        is_causal=attention_mask is None and query.shape[2] > 1,
        scale=scaling,
        enable_gqa=True,
    )
    return attended.transpose(1, 2).contiguous(), None


transformers.AttentionInterface.register(ATTENTION, attend)


def _packed(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    layout: Sequence[Call],
    scaling: float | None,
) -> torch.Tensor:
    # Tokens first, so that a stream is a slice.
    query, key, value = (each[0].transpose(0, 1) for each in (query, key, value))
    return torch.cat([_call(query, key, value, call, scaling) for call in layout])[None]


def _call(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    call: Call,
    scaling: float | None,
) -> torch.Tensor:
    """What the tokens of a call get, ``[tokens, heads, size]``.

    Streams are padded on the right, where causal attention does not look.
    """
    tokens = sum(call.lengths)
    queries, keys, values = (
        _batch(each[call.start : call.start + tokens], call.lengths) for each in (query, key, value)
    )
    start, stop = call.shared
    if stop > start:
        keys, values = (
            torch.cat([each[start:stop].expand(len(call.lengths), -1, -1, -1), own], 1)
            for each, own in ((key, keys), (value, values))
        )
    attended = F.scaled_dot_product_attention(
        queries.transpose(1, 2),
        keys.transpose(1, 2),
        values.transpose(1, 2),
        attn_mask=causal_lower_right(queries.shape[1], keys.shape[1]),
        scale=scaling,
        enable_gqa=True,
    ).transpose(1, 2)
    if len(set(call.lengths)) == 1:
        return attended.flatten(0, 1)
    return torch.cat([each[:own] for each, own in zip(attended, call.lengths, strict=True)])


def _batch(row: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
    """``[tokens, heads, size]`` as ``[streams, longest, heads, size]``."""
    if len(set(lengths)) == 1:
        return row.view(len(lengths), lengths[0], *row.shape[1:])
    return pad_sequence(row.split(list(lengths)), batch_first=True)
