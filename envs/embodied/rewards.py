"""Computes the rewards and the metrics of the embodied environments from events.

==========  =======  ===========  ===================================================
term        default  ``habitat``  score
==========  =======  ===========  ===================================================
success     1        10           1 if the goal was reached
progress    1        5            share of the conditions that were ever met: each is
                                  paid once, so that loops earn nothing; 0 after a
                                  sweep, unless the goal was reached
invalid     -0.05    -0.05        invalid actions and replies that could not be used
==========  =======  ===========  ===================================================

A sweep is an attempt with look-alikes instead of the object of the task: a look-alike was brought
to the destination (a guard of the goal was violated, after which the goal cannot be reached), or
brought into a state that the task requires (`LookalikeSweep` in `envs/embodied/world/goals.py`).
Otherwise a policy that sees nothing would be paid for the delivery of every look-alike. The tasks
of published data sets have no look-alikes that count as a sweep.

``"habitat"`` has the constants of EB-Habitat. The dense reward of ALFRED, which needs the
simulator's navigation graph, is not reproduced.
"""

from __future__ import annotations

from collections.abc import Mapping

from visenv.rewards import RewardTerm, of_log
from visenv.types import Answered, EventLog, Malformed, Sample

from .compat import OUTPUT_ERRORS

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "default": (1.0, 1.0, -0.05),
    "habitat": (10.0, 5.0, -0.05),
}
"""The weights of success, progress and invalid actions by the name of the reward."""


def reward_terms(name: str) -> list[RewardTerm]:
    """Return the three terms of a reward by name."""
    success, progress, invalid = WEIGHTS[name]
    return [
        RewardTerm(
            "success", success, of_log(success_score), "1 if an action reached the goal, else 0."
        ),
        RewardTerm(
            "progress",
            progress,
            of_log(progress_score),
            "Share of the conditions of the goal that were met at some time, 0 to 1; 0 if the goal "
            "was not reached and a look-alike was delivered.",
        ),
        RewardTerm(
            "invalid",
            invalid,
            of_log(invalid_score),
            "Number of invalid actions and of replies that could not be used.",
        ),
    ]


def success_score(log: EventLog, sample: Sample | None = None) -> float:
    """Return 1 if an action reached the goal."""
    return float(any(call.detail.get("success", False) for call in log.tool_calls))


def progress_score(log: EventLog, sample: Sample | None = None) -> float:
    """Return the share of the conditions that were met at some time, 0 after a failed sweep."""
    if not success_score(log) and any(call.detail.get("swept", False) for call in log.tool_calls):
        return 0.0
    met = {index for call in log.tool_calls for index in call.detail.get("met", ())}
    totals = [int(call.detail["conditions"]) for call in log.tool_calls if call.detail]
    return len(met) / totals[0] if totals else 0.0


def invalid_score(log: EventLog, sample: Sample | None = None) -> float:
    """Return the number of invalid actions and of replies that could not be used."""
    failed = sum(not call.ok for call in log.tool_calls)
    return float(failed + len(log.of_type(Malformed)))


def embodied_bench_metrics(
    log: EventLog, *, turns: int, steps: int, progress: float, compat: bool
) -> dict[str, float]:
    """Return the metrics of EmbodiedBench.

    Args:
        log: The events of the episode.
        turns: The number of turns.
        steps: The number of executed actions, including invalid ones.
        progress: The share of the conditions of the goal that are met, 0 to 1.
        compat: Whether errors and progress are counted as in the public code.
    """
    unread = log.of_type(Malformed)
    if compat:
        errors = sum(event.code in OUTPUT_ERRORS for event in unread)
        actions = steps
        if any(
            isinstance(event, Malformed | Answered) and event.turn == turns - 1 for event in log
        ):
            progress = 0.0  # the last turn has no plan that can be executed
    else:
        errors = len(unread)
        actions = steps + errors
    success, invalid = success_score(log), invalid_score(log)
    reward = success + progress_score(log) - 0.05 * invalid
    return {
        "success": success,
        "progress": progress,
        "steps": float(steps),
        "planner_steps": float(turns),
        "output_errors": float(errors),
        "invalid_actions": invalid,
        "invalid_ratio": invalid / actions if actions else 0.0,
        "empty_plans": float(log.answer is not None),
        "mean_reward": reward / max(1, steps),
    }
