"""Defines the teacher of the houses, which makes a detour and takes a wrong look-alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.grammar import ParsedTurn
from visenv.teacher import LapsingTeacher

if TYPE_CHECKING:
    import numpy as np

    from .env import HouseEnv


@dataclass(frozen=True)
class TakesLookalike(LapsingTeacher["HouseEnv"]):
    """Looks at further look-alikes before it acts, and takes a look-alike instead of the object.

    The detour is in all episodes, and the mistake in a share of them. A task without look-alikes
    is played as by the oracle.

    Attributes:
        detour: The number of further look-alikes that the teacher looks at, at strength 1.

    Raises:
        ConfigurationError: If `detour` is negative.
    """

    summary: ClassVar[str] = (
        "Looks at one more look-alike before it acts, and in 60 % of the episodes brings a random "
        "look-alike instead of the object."
    )
    detour: int = 1

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.detour < 0:
            raise ConfigurationError(f"detour must be 0 or more, got {self.detour!r}.")

    @override
    def turn(self, env: HouseEnv, rng: np.random.Generator) -> ParsedTurn:
        look = self._next_detour(env)
        return env.planned([look]) if look is not None else super().turn(env, rng)

    @override
    def mistaken_turn(self, env: HouseEnv, rng: np.random.Generator) -> ParsedTurn:
        others = env.truth.others
        if not others or not env.tools or env.next_look():
            return env.oracle_turn()
        return env.direct_turn(str(rng.choice(others)))

    def _next_detour(self, env: HouseEnv) -> int | None:
        """Return the id of the look at the next unneeded look-alike; None after the last detour."""
        if not env.tools or env.simulation.state.held or env.next_look():
            return None
        needless = env.needless_looks()
        done = [look for look in needless if look in env.actions_done()]
        left = [look for look in needless if look not in done]
        return left[0] if left and len(done) < round(self.strength * self.detour) else None
