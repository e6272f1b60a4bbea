"""Warns about a run in which the rewards of no group differ: after ten steps, and at its end.

An algorithm that compares the episodes of a group then has no gradient: the run ends as usual, and
the weights are those of before.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from .metrics import read_metrics

ZERO_STD = "groups/zero_std"
"""The metric with the share of groups in which all rewards are equal."""

FIRST_STEPS = 10
"""Number of steps after which a run without different rewards is reported while it runs."""

_ADVICE = (
    "Each group had equal rewards, so the policy gradient was 0. If this is the highest possible "
    "reward, the task is solved. Otherwise, try easier samples (an easier preset or data that the "
    "model sometimes solves), a higher temperature, more num_generations, a larger max_tokens, a "
    'reward with partial credit, or demonstrations first (a phase with algorithm = "sft"). Look at '
    "the episodes to see how they fail: visenv view."
)


def spread_warnings(path: Path) -> list[str]:
    """Return a warning if no group of a run had different rewards.

    Args:
        path: The file of metrics of the run.

    Returns:
        One warning for the run; in a mixture, one for each environment of which no group had
        different rewards; an empty list if all is well, or groups have a single episode.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    rewards: dict[str, list[float]] = defaultdict(list)
    for _, row in read_metrics(path):
        for name, value in row.items():
            env = name.removesuffix(ZERO_STD)
            if name == f"{env}{ZERO_STD}" and "kind/" not in env:
                shares[env].append(value)
                rewards[env].append(row.get(f"{env}reward", 0.0))
    flat = [env for env, values in shares.items() if min(values) >= 1.0]
    if "" in flat:
        flat = [""]
    return [
        f"No group{_of(env)} had different rewards in any of {len(shares[env])} steps (mean reward "
        f"{sum(rewards[env]) / len(rewards[env]):.3g}). {_ADVICE}"
        for env in flat
    ]


def _of(env: str) -> str:
    name = env.removeprefix("env/").removesuffix("/")
    return f" of {name}" if name else ""
