"""The ground truth of a LIBERO sample: which task it is and where it starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiberoTruth:
    """A task of LIBERO at one of its stored initial states.

    Attributes:
        suite: The suite, for example ``"libero_goal"``.
        task: The number of the task in LIBERO's default order, from 0.
        state: The number of the stored initial state, from 0.
        seed: Seeds LIBERO before the task is loaded; it decides the poses of the fixtures, which
            the stored states leave out.
        start: A flattened MuJoCo state to start at instead of a stored one, before the settling
            steps; empty for a stored one.
    """

    suite: str
    task: int
    state: int
    seed: int = 0
    start: tuple[float, ...] = ()
