"""Computes a single reward term, for tests of terms that are plain functions of an episode."""

from __future__ import annotations

from visenv.rewards import RewardContext, RewardTerm
from visenv.types import EventLog, Sample


def unweighted(term: RewardTerm, log: EventLog, sample: Sample) -> float:
    """Return the value of a term that is neither asynchronous nor None."""
    value = term.score(RewardContext(log, sample))
    assert isinstance(value, int | float)
    return float(value)
