"""Reads the metrics of runs, and provides an algorithm that changes weights in every step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.algos.policy_gradient import GRPO


def timeless(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of metrics without the values that depend on the clock."""
    return [
        {name: value for name, value in row.items() if not name.startswith(("seconds", "rollout"))}
        for row in rows
    ]


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that a run wrote, `timeless`."""
    return timeless(map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()))


class Sloped(GRPO):
    """Gives every episode a different advantage, so that every step changes the weights."""

    @override
    def advantages(self, groups: Any) -> Any:
        return [
            [np.asarray(np.sin(1.0 + 7 * each.seed + 3 * each.member)) for each in group]
            for group in groups
        ]


def small_sweep(head: str, sweep: str, *, steps: int, groups: int, episodes: int) -> str:
    """Return a TOML recipe of a warm-up and RL with two arms, ``paper`` and ``outcome``.

    Args:
        head: Further fields of the recipe.
        sweep: The tables ``sweep`` and ``sweep.arms.paper``.
        steps: Number of RL steps.
        groups: Groups in a step.
        episodes: Held-out episodes in an evaluation.
    """
    return f"""
name = "job"
{head}
[environments.scenes]
id = "visenv/ZoomVQA-v0"
options = {{ preset = "tiny" }}
[model]
name = "tiny"
tokenizer_episodes = 8
options = {{ threads = 1 }}
[phases.warm-up]
algorithm = "sft"
steps = 1
demonstrations = {{ episodes = 4, batch_size = 2 }}
[phases.rl]
algorithm = "grpo"
steps = {steps}
rollouts = {{ prompts_per_step = {groups}, num_generations = 2, max_tokens = 8 }}
[evaluation]
every = 1
episodes = {episodes}
max_tokens = 8
{sweep}
[sweep.arms.outcome.changes.phases.rl]
options = {{ reward = "outcome" }}
"""
