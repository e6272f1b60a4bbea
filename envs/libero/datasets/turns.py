"""Turns the actions of demonstrations into texts: removes those without effect, and writes chunks.

As in OpenVLA's script, an action is removed if its first six numbers have a norm below 1e-4 and the
gripper command equals that of the last action that was kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from ..actions import MOST_ROWS, encode

SMALLEST_MOVE = 1e-4
"""Norm of the first six numbers of an action below which it has no effect."""

Actions = Sequence[Sequence[float]]


def moving_rows(actions: Actions) -> list[int]:
    """Return the indices of the actions with an effect; for the first one, only the norm counts."""
    kept: list[int] = []
    for place, row in enumerate(actions):
        moves = float(np.linalg.norm(np.asarray(row[:6], float))) >= SMALLEST_MOVE
        if moves or (kept and row[6] != actions[kept[-1]][6]):
            kept.append(place)
    return kept


def without_no_ops(actions: Actions) -> list[list[float]]:
    """Return the actions with an effect (`moving_rows`)."""
    return [list(actions[place]) for place in moving_rows(actions)]


def chunks(actions: Actions, rows: int = MOST_ROWS) -> list[str]:
    """Return actions as the texts of turns, with `rows` actions each."""
    written = encode([list(row) for row in actions])
    return [
        json.dumps({"actions": written[begin : begin + rows]})
        for begin in range(0, len(written), rows)
    ]
