"""Pays rewards step by step: each turn gets the value of the episode so far, minus earlier pay.

The steps that a task needs are known from its sample. Turns are matched with steps one to one, so
that each step is paid once, even if it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from visenv.env import Observation
from visenv.errors import EpisodeOverError
from visenv.rewards import RewardTerm, RewardWrapper, of_log
from visenv.types import Event, EventLog, Sample, TurnTaken

ANSWER = "answer"
"""Kind of the last step."""


class StepRewardWrapper(RewardWrapper):
    """Pays the increase of the terms after every turn; all payments add up to their final value.

    ``info["step"].terms`` contains the values so far. An aborted step gets 0, and so do the
    steps before it in an `Episode`. The arguments are those of `RewardWrapper`.
    """

    each_step: ClassVar[bool] = True
    _paid = 0.0
    _was_aborted = False

    @override
    def begin_episode(self) -> None:
        """Set the paid amount to 0."""
        self._paid, self._was_aborted = 0.0, False

    @override
    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take a step, and pay the increase of the total of the terms since the last step.

        Raises:
            EpisodeOverError: If the episode has ended, also because a term could not be computed.
        """
        if self._was_aborted:
            raise EpisodeOverError("The episode was aborted; call reset() before step().")
        taken = super().step(action)
        self._was_aborted = bool(taken[-1]["aborted"])
        return taken

    @override
    def reward_now(self, total: float) -> float:
        """Return the increase of the total since the last step."""
        increase, self._paid = total - self._paid, total
        return increase


class ReferenceStep(NamedTuple):
    """Describes a step that the task needs.

    Attributes:
        kind: The kind of turn that does the step.
        weight: The weight of the step; the weights of all steps of a sample add up to 1.
        truth: The reference for a turn, for example the gold query.
    """

    kind: str
    weight: float
    truth: Any = None


class StepScore(NamedTuple):
    """Holds the value of turns, each field 0 to 1."""

    accuracy: float = 0.0
    form: float = 0.0


class StepTerms(NamedTuple):
    """Computes the terms ``steps`` and ``format`` of an episode whose turns are matched with steps.

    Of all matchings that assign each turn to at most one step and each step to at most one turn,
    the best counts. A further turn can therefore only increase the value.

    Attributes:
        steps: Returns the gold steps of a sample.
        accuracy: Returns how well a turn does a step, 0 to 1, given the turn's events; None if
            it does not do the step at all.
        well_formed: Returns whether the text of a turn has the required form.
        select: Returns the events that count; None counts all.
        credit: Returns the factor of the steps before the answer, at most 1; None is 1. The best
            matching does not depend on it.
    """

    steps: Callable[[Sample], Sequence[ReferenceStep]]
    accuracy: Callable[[Sequence[Event], ReferenceStep, Sample], float | None]
    well_formed: Callable[[str], bool]
    select: Callable[[EventLog], EventLog] | None = None
    credit: Callable[[EventLog, Sample], float] | None = None

    def terms(self) -> list[RewardTerm]:
        """Return both terms, each with weight 1."""
        return [
            RewardTerm(
                "steps",
                1.0,
                of_log(self._steps_term),
                "Weighted mean of the accuracies of the steps of the task, 0 to 1; a step that no "
                "turn does counts 0.",
            ),
            RewardTerm(
                "format",
                1.0,
                of_log(self._format_term),
                "Weighted share of the steps of the task that a well-formed turn does, 0 to 1.",
            ),
        ]

    def worth(self, log: EventLog, sample: Sample) -> StepScore:
        """Return the value of the turns so far."""
        steps = self.steps(sample)
        credit = 1.0 if self.credit is None else self.credit(log, sample)
        if self.select is not None:
            log = self.select(log)
        # The best scores of the steps for each set of done steps; a set is a bit mask.
        best: dict[int, Mapping[int, StepScore]] = {0: {}}
        for events in by_turn(log):
            gains = dict(self._gains(events, steps, sample))
            for taken, done in list(best.items()):
                for place, gain in gains.items():
                    if not taken >> place & 1:
                        also = taken | 1 << place
                        best[also] = max(best.get(also, {}), {**done, place: gain}, key=_total)
        chosen = max(best.values(), key=_total)
        factors = {place: 1.0 if steps[place].kind == ANSWER else credit for place in chosen}
        return StepScore(
            sum(factors[place] * gain.accuracy for place, gain in chosen.items()),
            sum(factors[place] * gain.form for place, gain in chosen.items()),
        )

    def _gains(
        self, events: Sequence[Event], steps: Sequence[ReferenceStep], sample: Sample
    ) -> Iterator[tuple[int, StepScore]]:
        """Yield the index of each step that the turn does, and the value of the turn for it."""
        turn = events[0]
        assert isinstance(turn, TurnTaken)
        form = float(self.well_formed(turn.text))
        for place, step in enumerate(steps):
            accuracy = self.accuracy(events, step, sample)
            if accuracy is not None:
                yield place, StepScore(step.weight * accuracy, step.weight * form)

    def _steps_term(self, log: EventLog, sample: Sample) -> float:
        return self.worth(log, sample).accuracy

    def _format_term(self, log: EventLog, sample: Sample) -> float:
        return self.worth(log, sample).form


def _total(done: Mapping[int, StepScore]) -> float:
    """Return the sum of all scores of the done steps."""
    return sum(sum(gain) for gain in done.values())


def by_turn(log: EventLog) -> list[list[Event]]:
    """Return the events of each turn, its `TurnTaken` first."""
    turns: list[list[Event]] = []
    for event in log:
        if isinstance(event, TurnTaken):
            turns.append([])
        turns[-1].append(event)
    return turns


def reference_steps(before: Sequence[tuple[str, Any]], answer: Any) -> list[ReferenceStep]:
    """Return the steps before the answer, and the answer, with their weights.

    The answer weighs more than all other steps together: n other steps weigh 1 / (2n + 1) each,
    the answer (n + 1) / (2n + 1). All other steps together are therefore worth less than a right
    answer alone, and an answer always adds to the value.

    Args:
        before: Kind and truth of each step before the answer.
        answer: The truth of the answer.
    """
    whole = 2 * len(before) + 1
    steps = [ReferenceStep(kind, 1 / whole, truth) for kind, truth in before]
    return [*steps, ReferenceStep(ANSWER, (len(before) + 1) / whole, answer)]
