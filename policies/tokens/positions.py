"""Computes M-RoPE positions of a stream of text, images and videos."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from visenv.types import VideoSpan

from .family import Span


def rope_positions(
    length: int,
    spans: Sequence[Span],
    grids: Sequence[tuple[int, int, int]],
    merge: int,
    tokens_per_second: float = 1.0,
) -> NDArray[np.int64]:
    """Return the M-RoPE positions of a stream (Qwen2-VL, arXiv 2409.12191, §2.1).

    Each text token increases all three axes by 1. An image is a grid that starts at the current
    position; the next token continues after its longest side. The time axis of a run of several
    steps counts seconds (Qwen2.5-VL, arXiv 2502.13923, §2.1.2), and the next token continues after
    the largest position of all axes, as in vLLM and in the first code of the model. transformers
    5.17 truncates the seconds of a step before the multiplication, and continues after the longest
    side of a frame.

    Args:
        length: Number of tokens in the stream.
        spans: The images and runs of videos, in order, each with one run of placeholders.
        grids: Patches ``(time, height, width)`` of each of them.
        merge: Patches per placeholder along one side.
        tokens_per_second: Positions per second of a video.

    Returns:
        int64 ``[3, length]``: time, height and width.
    """
    positions = np.empty((3, length), np.int64)
    end = position = 0
    for span, (steps, height, width) in zip(spans, grids, strict=True):
        text = span.offset - end
        positions[:, end : span.offset] = position + np.arange(text)
        position += text
        end = span.offset + span.length
        grid = (steps, height // merge, width // merge)
        places = np.indices(grid).reshape(3, -1)  # [3, tokens]
        if isinstance(span, VideoSpan):
            places[0] = (places[0] * (span.seconds_per_step * tokens_per_second)).astype(np.int64)
        positions[:, span.offset : end] = position + places
        position += int(places.max()) + 1
    positions[:, end:] = position + np.arange(length - end)
    return positions
