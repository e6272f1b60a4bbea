"""Defines the ground truth of a LIBERO sample: its task and its initial state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiberoTruth:
    """Identifies a task of LIBERO at one of its stored initial states.

    Attributes:
        suite: The suite, for example ``"libero_goal"``.
        task: The index of the task in LIBERO's default order, from 0.
        state: The index of the stored initial state, from 0.
        seed: The seed of LIBERO when the task is loaded; it determines the poses of the fixtures,
            which the stored states do not contain.
        start: A flattened MuJoCo state to start from, before the settling steps; empty to start
            from the stored one.
    """

    suite: str
    task: int
    state: int
    seed: int = 0
    start: tuple[float, ...] = ()
