"""What tests read of a run, and an algorithm with which every step of it counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from visenv.algos.policy_gradient import GRPO


def timeless(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of metrics without what depends on the clock."""
    return [
        {name: value for name, value in row.items() if not name.startswith(("seconds", "rollout"))}
        for row in rows
    ]


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows that a run has written, `timeless`."""
    return timeless(map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()))


class Sloped(GRPO):
    """Every episode has an advantage of its own, so that every step changes the weights."""

    def advantages(self, groups: Any) -> Any:
        return [
            [np.asarray(np.sin(1.0 + 7 * each.seed + 3 * each.member)) for each in group]
            for group in groups
        ]
