"""Reward terms: named functions of an episode's events and sample, and what they may ask."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, NamedTuple, Protocol

from visenv.errors import ConfigurationError
from visenv.types import Log, Sample, Scored

Verdicts = Mapping[tuple[str, str], Any]
"""Recorded values of scorers by the scorer's name and the digest of the request."""


class AskedScorer(Protocol):
    """A scorer that a term can ask: a scorer of `visenv.scorers`, or a judge on top of one."""

    name: str

    def digest(self, request: Any) -> str:
        """Return the digest of a request, which is stable across processes and versions."""
        ...

    async def score(self, request: Any) -> Any:
        """Return the verdict on a request, with the attributes `value` and `model`."""
        ...


TermFunction = Callable[["RewardContext"], "float | Awaitable[float | None] | None"]


class RewardTerm(NamedTuple):
    """One named part of a reward.

    Attributes:
        name: Its key in `StepResult.terms`.
        weight: Its factor in the weighted sum.
        score: Returns the unweighted value of an episode, or None if the term does not apply. It
            may be an ``async def``, for example to ask a judge.
    """

    name: str
    weight: float
    score: TermFunction

    @property
    def is_async(self) -> bool:
        """Whether `score` is an ``async def``, also inside a `functools.partial`."""
        score: Any = self.score
        while isinstance(score, partial):
            score = score.func
        call = getattr(score, "__call__", None)  # noqa: B004  an object with an async __call__
        return inspect.iscoroutinefunction(score) or inspect.iscoroutinefunction(call)


class RewardContext:
    """What a term reads: the events, the sample, and the terms before it.

    Args:
        log: The events of the episode.
        sample: Its sample.
        verdicts: Recorded verdicts, which answer in place of scorers.

    Attributes:
        log: The events of the episode.
        sample: Its sample.
        terms: The unweighted values of the terms so far, by name.
        notes: Reasons by name, for each term that is None.
        verdict_events: One `Scored` event for each verdict so far.
    """

    def __init__(self, log: Log, sample: Sample, verdicts: Verdicts | None = None) -> None:
        self.log = log
        self.sample = sample
        self.terms: dict[str, float | None] = {}
        self.notes: dict[str, str] = {}
        self.verdict_events: list[Scored] = []
        self._verdicts = verdicts or {}
        self._note = ""
        self._term = ""

    def skip(self, reason: str) -> None:
        """Note why the present term does not apply: ``return context.skip("no points")``."""
        self._note = reason

    async def ask(self, scorer: AskedScorer, request: Any) -> Any:
        """Return the value of a scorer's verdict on a request, and log the verdict.

        A verdict that was recorded with a saved episode is taken as it is.

        Raises:
            ServiceError: If the scorer failed beyond its retries.
        """
        digest = scorer.digest(request)
        recorded = self._verdicts.get((scorer.name, digest))
        if recorded is None:
            verdict = await scorer.score(request)
            recorded = Recorded(verdict.value, verdict.model)
        turn = self.log[-1].turn if len(self.log) else 0
        event = Scored(turn, self._term, scorer.name, recorded.model, digest, recorded.value)
        self.verdict_events.append(event)
        return recorded.value

    async def compute(self, term: RewardTerm) -> None:
        """Compute the next term.

        Raises:
            ConfigurationError: If it is not a number or None.
            ServiceError: If a scorer failed beyond its retries.
        """
        self._term, self._note = term.name, ""
        value = term.score(self)
        if inspect.isawaitable(value):
            value = await value
        if value is None:
            self.notes[term.name] = self._note or "does not apply"
            self.terms[term.name] = None
            return
        if not _is_number(value):
            raise ConfigurationError(
                f"The reward term {term.name!r} must be a float or None, got {value!r:.80}."
            )
        self.terms[term.name] = float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real)


class Recorded(NamedTuple):
    """The value of a verdict and the model that gave it."""

    value: Any
    model: str


def of_log(score: Callable[[Log, Sample], float]) -> TermFunction:
    """Return the term function of a plain function of the events and the sample."""
    return partial(_of_log, score)


def _of_log(score: Callable[[Log, Sample], float], context: RewardContext) -> float:
    return score(context.log, context.sample)
