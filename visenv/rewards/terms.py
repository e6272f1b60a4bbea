"""Defines reward terms: named functions of an episode's events and sample."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

from visenv.errors import ConfigurationError
from visenv.scorers.scorer import using
from visenv.scorers.verdict_events import EpisodeVerdicts, Verdicts
from visenv.types import EventLog, Sample, Scored

TermFunction = Callable[["RewardContext"], "float | Awaitable[float | None] | None"]


def as_float(value: object) -> float | None:
    """Return a real number as a float; None for anything else, and beyond the range of floats."""
    if isinstance(value, Real):
        with suppress(OverflowError):
            return float(value)
    return None


class RewardTerm(NamedTuple):
    """Describes one named term of a reward.

    Attributes:
        name: The key of the term in `StepResult.terms`.
        weight: The factor of the term in the weighted sum.
        score: Returns the unweighted value of an episode, or None if the term does not apply. The
            function may be an ``async def``, for example to use a judge (`visenv.scorers`); each
            verdict is then logged with the episode.
        summary: One sentence that describes the value, for the card (`visenv.cards`).
    """

    name: str
    weight: float
    score: TermFunction
    summary: str = ""

    @property
    def is_async(self) -> bool:
        """Return whether `score` is an ``async def``, also inside a `functools.partial`."""
        score: Any = self.score
        while isinstance(score, partial):
            score = score.func
        call = getattr(score, "__call__", None)  # noqa: B004  an object with an async __call__
        return inspect.iscoroutinefunction(score) or inspect.iscoroutinefunction(call)


class RewardContext:
    """Holds all data that a term may read: the events, the sample, and the previous terms.

    Args:
        log: The events of the episode.
        sample: The sample of the episode.
        recorded: Recorded verdicts, which replace those of scorers; if None, the scorers are used.
        ask_missing: Whether verdicts that are not recorded are requested from scorers.

    Attributes:
        log: The events of the episode.
        sample: The sample of the episode.
        terms: The unweighted values of the terms so far, by name.
        notes: Reasons by name, for each term that is None.
        verdict_events: One `Scored` event for each verdict so far.
    """

    def __init__(
        self,
        log: EventLog,
        sample: Sample,
        recorded: Verdicts | None = None,
        ask_missing: bool = False,
    ) -> None:
        self.log = log
        self.sample = sample
        self.terms: dict[str, float | None] = {}
        self.notes: dict[str, str] = {}
        self.verdict_events: list[Scored] = []
        self._recorded = recorded
        self._ask_missing = ask_missing
        self._note = ""

    def skip(self, reason: str) -> float | None:
        """Record why the current term does not apply, and return None.

        ::

            return context.skip("the response has no points")
        """
        self._note = reason
        return None

    def compute(self, term: RewardTerm) -> None:
        """Compute the next term, which is not asynchronous.

        Raises:
            ConfigurationError: If it is not a number or None.
        """
        self._take(term, term.score(self))

    async def compute_async(self, term: RewardTerm) -> None:
        """Compute the next term, which may be asynchronous, and log the verdicts that it requests.

        Raises:
            ConfigurationError: If it is not a number or None.
            ServiceError: If a scorer failed after all retries.
        """
        turn = self.log[-1].turn if len(self.log) else 0
        verdicts = EpisodeVerdicts(turn, term.name, self._recorded, self._ask_missing)
        with using(verdicts):
            value = term.score(self)
            if inspect.isawaitable(value):
                value = await value
        self.verdict_events += verdicts.sorted_events()
        self._take(term, value)

    def _take(self, term: RewardTerm, value: Any) -> None:
        if type(value) is float:
            self.terms[term.name] = value
        elif value is None:
            self.notes[term.name] = self._note or "does not apply"
            self.terms[term.name] = None
        elif (number := as_float(value)) is not None:
            self.terms[term.name] = number
        else:
            raise ConfigurationError(
                f"The reward term {term.name!r} must be a float or None, got {value!r:.80}. A term "
                "that waits is an 'async def'."
            )
        self._note = ""


def of_log(score: Callable[[EventLog, Sample], float]) -> TermFunction:
    """Convert a function of the events and the sample to a term function."""
    return partial(_of_log, score)


def _of_log(score: Callable[[EventLog, Sample], float], context: RewardContext) -> float:
    return score(context.log, context.sample)
