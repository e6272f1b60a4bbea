"""Collects the tokens of a turn for the page: their number and their log-probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from visenv.types import Episode

MOST_POINTS = 160
"""Most log-probabilities of one turn on the page; for more tokens, each run of them shows its
minimum."""


def turn_tokens(episode: Episode) -> dict[int, dict[str, Any]]:
    """Return statistics of the sampled tokens of each turn, by the number of the turn.

    Returns:
        ``tokens`` (number of sampled tokens, without the prefill). If log-probabilities are known,
        also ``mean`` and ``lowest`` (natural log), and ``logprobs``, at most `MOST_POINTS`, in
        order.
    """
    facts: dict[int, dict[str, Any]] = {}
    for segment in episode.segments:
        for span in segment.turns:
            logprobs = segment.logprobs[span.start : span.end].astype(np.float64)
            facts[span.turn] = {"tokens": span.end - span.start, **_logprobs(logprobs)}
    return facts


def _logprobs(logprobs: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    if not logprobs.size or np.isnan(logprobs).any():
        return {}
    runs = np.array_split(logprobs, min(len(logprobs), MOST_POINTS))
    return {
        "mean": round(float(logprobs.mean()), 4),
        "lowest": round(float(logprobs.min()), 4),
        "logprobs": [round(float(run.min()), 3) for run in runs],
    }
