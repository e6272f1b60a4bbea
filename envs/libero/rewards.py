"""Computes the reward of Libero from events.

=======  ======  ================================================
term     weight  score
=======  ======  ================================================
success  1       1 if the goal holds at the end of a chunk, else 0
=======  ======  ================================================
"""

from __future__ import annotations

from visenv.rewards import RewardTerm, of_log
from visenv.types import EventLog, Sample


def reward_terms() -> list[RewardTerm]:
    """Return the only term of the reward."""
    summary = "1 if the goal holds at the end of the last executed chunk, else 0."
    return [RewardTerm("success", 1.0, of_log(success_score), summary)]


def success_score(log: EventLog, sample: Sample | None = None) -> float:
    """Return 1 if the goal held after the last executed chunk."""
    carried_out = [call for call in log.tool_calls if call.ok]
    return float(bool(carried_out and carried_out[-1].detail["success"]))
