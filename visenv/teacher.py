"""Defines `Teacher`, a player with a documented flaw, whose demonstrations training can exceed.

The oracle (`VisEnv.oracle_turn`) plays perfectly. Demonstrations of people or of larger models are
not perfect: they look beside the object, or stop too early. A task describes such players as
teachers, in `VisEnv.teachers`. A model that is trained on the episodes of a teacher imitates its
flaw, and reinforcement learning can exceed it.

Two base classes implement the flaws that several tasks share: an `AimingTeacher` aims beside its
target, and a `LapsingTeacher` makes its mistake in a share of the episodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import override

from visenv.errors import ConfigurationError, UnknownNameError

if TYPE_CHECKING:
    import numpy as np

    from visenv.env import VisEnv
    from visenv.grammar.base import ParsedTurn

EnvT = TypeVar("EnvT", bound="VisEnv")

DEFAULT_TEACHER = "default"
"""The name that selects the first teacher of each environment."""

GIVING_UP = "unknown"
"""The answer of a demonstration that gives up."""


@dataclass(frozen=True)
class Teacher(ABC, Generic[EnvT]):
    """Base class of teachers.

    A teacher knows the ground truth and has one flaw. The flaw is a property of the player: neither
    the reward nor the world depends on it. Subclasses are frozen dataclasses; their further fields
    are options.

    Attributes:
        summary: A sentence that describes the flaw at strength 1; the card shows it.
        strength: The strength of the flaw, 0 or more. At 0 the teacher plays like the oracle.

    Raises:
        ConfigurationError: If `strength` is negative or not a finite number.
    """

    summary: ClassVar[str]
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.strength < float("inf"):
            raise ConfigurationError(
                f"The strength of a teacher must be 0 or more, got {self.strength!r}."
            )

    def require_share(self, option: str) -> None:
        """Raise `ConfigurationError` unless the value of an option is from 0 to 1."""
        value = getattr(self, option)
        if not 0 <= value <= 1:
            raise ConfigurationError(f"{option} must be from 0 to 1, got {value!r}.")

    def require_not_negative(self, option: str) -> None:
        """Raise `ConfigurationError` unless the value of an option is 0 or more."""
        value = getattr(self, option)
        if not value >= 0:
            raise ConfigurationError(f"{option} must be 0 or more, got {value!r}.")

    @abstractmethod
    def turn(self, env: EnvT, rng: np.random.Generator) -> ParsedTurn:
        """Return the next turn.

        Args:
            env: The environment, which this method does not change.
            rng: Random numbers of the episode. The generator begins equally in each turn, so that
                a teacher can draw a flaw of the whole episode again.
        """


@dataclass(frozen=True)
class AimingTeacher(Teacher[EnvT]):
    """Base class of teachers that aim beside their target, by a constant offset and by noise.

    On each axis, the error is ``strength * (offset + noise * z)``, where z has a standard normal
    distribution. A subclass states the unit, for example sides of the target.

    Attributes:
        offset: The constant part of the error, (x, y).
        noise: The standard deviation of the random part for each axis, 0 or more.

    Raises:
        ConfigurationError: If `noise` is negative.
    """

    offset: tuple[float, float] = (0.0, 0.0)
    noise: float = 0.0

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_not_negative("noise")

    def error(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw the error of one aim, (x, y)."""
        across, down = rng.standard_normal(2).tolist()
        x, y = self.offset
        return self.strength * (x + self.noise * across), self.strength * (y + self.noise * down)


@dataclass(frozen=True)
class LapsingTeacher(Teacher[EnvT]):
    """Base class of teachers that make a mistake in a share of the episodes.

    The share is ``min(1, strength * rate)``. In the other episodes the teacher plays like the
    oracle. An episode with the mistake also has it at every higher strength.

    Attributes:
        rate: The share of the episodes with the mistake at strength 1, 0 to 1.

    Raises:
        ConfigurationError: If `rate` is not in this range.
    """

    rate: float = 0.6

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_share("rate")

    @override
    def turn(self, env: EnvT, rng: np.random.Generator) -> ParsedTurn:
        if rng.random() < self.strength * self.rate:
            return self.mistaken_turn(env, rng)
        return env.oracle_turn()

    @abstractmethod
    def mistaken_turn(self, env: EnvT, rng: np.random.Generator) -> ParsedTurn:
        """Return the next turn of an episode with the mistake; see `turn` for the arguments."""


def make_teacher(
    env: VisEnv, name: str, strength: float, options: Mapping[str, Any]
) -> Teacher[Any]:
    """Return a teacher of an environment.

    Args:
        env: The environment.
        name: The name of the teacher in `VisEnv.teachers`, or `DEFAULT_TEACHER`.
        strength: The strength of the flaw.
        options: Values of further fields of the teacher.

    Raises:
        UnknownNameError: If the environment has no such teacher, or the teacher no such option.
        ConfigurationError: If the environment has no teacher, or the value of an option is invalid.
    """
    task = type(env).__name__
    if not env.teachers:
        raise ConfigurationError(
            f"{task} has no teacher, got {name!r}: use the oracle for its demonstrations."
        )
    if name == DEFAULT_TEACHER:
        name = next(iter(env.teachers))
    if name not in env.teachers:
        raise UnknownNameError(f"teacher of {task}", name, env.teachers)
    made = env.teachers[name]
    known = [field.name for field in fields(made)]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of the teacher {name!r}", option, known)
    try:
        return TypeAdapter(made).validate_python({"strength": strength, **options})
    except ValidationError as error:
        place = error.errors()[0]
        option = ".".join(map(str, place["loc"]))
        raise ConfigurationError(
            f"The option {option} of the teacher {name!r} is invalid: {place['msg']}."
        ) from error
