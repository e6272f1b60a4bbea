"""Defines the requests to one environment of an `EpisodePool`, and the results.

`reset_requests` converts the arguments of a reset of several environments to one request for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.seeding import seeds
from visenv.types import Aborted, Failure, StepResult


class ResetRequest(NamedTuple):
    """Requests the start of an episode, with the arguments of `VisEnv.reset`."""

    seed: int | None = None
    options: dict[str, Any] | None = None


class EnvResult(NamedTuple):
    """Holds the result of a step or a reset of one environment, with the five values of `step`.

    The result of a reset has the reward 0.0, and `terminated` and `truncated` are False. The result
    of a failed reset is like that of an aborted step.
    """

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def over(self) -> bool:
        """Return whether the episode has ended; the next request must then be a reset."""
        return self.terminated or self.truncated


def nothing_new() -> Observation:
    """Return an empty observation."""
    return {"text": "", "images": ()}


def aborted(turn: int, failure: Failure) -> EnvResult:
    """Return the result of an episode whose environment failed in turn `turn`."""
    event = Aborted(turn, failure.name, failure.reason)
    step = StepResult(events=(event,), failure=failure)
    return EnvResult(nothing_new(), 0.0, False, True, step.info)


Seeds = int | Sequence[int | None] | NDArray[np.integer[Any]] | None
"""One seed for all environments, or one seed for each."""

Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None
"""Options of `VisEnv.reset`: one mapping for all environments, or one for each."""


def spread_seeds(given: Seeds, count: int) -> list[int | None]:
    """Return a seed for each environment; a single seed is expanded to independent seeds.

    Raises:
        ConfigurationError: If `given` is not an integer, None, or a sequence that contains one
            integer or None for each environment.
    """
    if _is_integer(given):
        return list(seeds(np.random.SeedSequence(int(given)), count))  # type: ignore[arg-type]
    return each_seed(given, count)


def each_seed(given: Seeds, count: int) -> list[int | None]:
    """Return a seed for each environment; a single seed is used for all.

    Raises:
        ConfigurationError: If `given` is not an integer, None, or a sequence that contains one
            integer or None for each environment.
    """
    each: Any = given.tolist() if isinstance(given, np.ndarray) and given.ndim else given
    if each is None or _is_integer(each):
        each = [each] * count
    is_list = isinstance(each, Sequence) and not isinstance(each, str | bytes)
    if not is_list or len(each) != count or not all(map(_is_seed, each)):
        raise ConfigurationError(
            f"{count} environments need one seed, or {count} seeds (integers or None) in a list, a "
            f"tuple or an array of one dimension, got {given!r:.80}."
        )
    return [None if seed is None else int(seed) for seed in each]


def reset_requests(each: Sequence[int | None], options: Options) -> list[ResetRequest]:
    """Return the request for each environment.

    Args:
        each: The seed of each environment.
        options: One mapping of options for all environments, or one for each.

    Raises:
        ConfigurationError: If the numbers of options and of seeds differ.
    """
    count = len(each)
    each_options = options if isinstance(options, Sequence) else [options] * count
    if len(each_options) != count:
        raise ConfigurationError(
            f"{count} environments need one mapping of options, or {count}, got "
            f"{len(each_options)}."
        )
    pairs = zip(each, each_options, strict=True)
    return [ResetRequest(seed, dict(option or {})) for seed, option in pairs]


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_seed(value: object) -> bool:
    return value is None or _is_integer(value)
