"""Computes the score of RewardBench 2's Ties subset (Malik et al., arXiv 2506.01937) from ratings.

Each prompt occurs twice: as a reference (``ref:7``) with one right answer, and tied (``tied:7``)
with several that are equally right. A good judge rates every right answer above every wrong one,
and the ratings of right answers are closer to each other than to those of wrong ones. With, for one
prompt,

- ``spread`` = best - worst rating of the right answers,
- ``gap`` = worst rating of the right answers - best rating of the wrong ones,

the score is the weighted sum of five means, as in the benchmark's own code:

=========  ======  ==================================================  =========================
part       weight  value of a prompt                                   mean over
=========  ======  ==================================================  =========================
ref        0.30    1 if ``gap > 0``                                    references
tied       0.30    1 if ``gap > 0``                                    tied prompts
margin     0.20    1 if the tied ``gap > spread``                      prompts in both forms
hard       0.20    1 if the smaller ``gap`` of the two ``> spread``    prompts in both forms
fine       0.01    ``tanh(smaller gap / spread - 1)``                  prompts in both forms
=========  ======  ==================================================  =========================

It is between -0.01 and 1.01. If the spread is 0, ``fine`` is the gap's sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from visenv.errors import DataError


class RatedPrompt(NamedTuple):
    """Holds the ratings of a prompt's answers.

    Attributes:
        id: ``"ref:<n>"`` or ``"tied:<n>"``.
        ratings: One for each answer; the right answers come first.
        correct: The number of right answers.
    """

    id: str
    ratings: Sequence[float]
    correct: int


class TiesScore(NamedTuple):
    """Holds the five parts, each a mean; see the module."""

    ref: float
    tied: float
    margin: float
    hard: float
    fine: float

    @property
    def total(self) -> float:
        """Return 0.3 ref + 0.3 tied + 0.2 margin + 0.2 hard + 0.01 fine, -0.01 to 1.01."""
        right = 0.3 * self.ref + 0.3 * self.tied
        return right + 0.2 * self.margin + 0.2 * self.hard + 0.01 * self.fine


class _Spans(NamedTuple):
    spread: float
    gap: float


def ties_score(prompts: Iterable[RatedPrompt]) -> TiesScore:
    """Compute the score from the ratings of the whole subset.

    Raises:
        DataError: If an id has another form or occurs twice, a prompt lacks right or wrong
            answers, or no prompt occurs in both forms.
    """
    forms: dict[str, dict[int, _Spans]] = {"ref": {}, "tied": {}}
    for prompt in prompts:
        form, number = _identity(prompt.id)
        if number in forms[form]:
            raise DataError(f"{prompt.id} was rated twice.")
        forms[form][number] = _spans(prompt)
    ref, tied = forms["ref"], forms["tied"]
    both = [
        (tied[number].spread, tied[number].gap, ref[number].gap) for number in tied.keys() & ref
    ]
    if not both:
        raise DataError(
            "The margin compares prompts with the same number in both forms, ref:N and tied:N, and "
            "no number occurs in both: rate the whole subset Ties."
        )
    return TiesScore(
        ref=_mean([each.gap > 0 for each in ref.values()]),
        tied=_mean([each.gap > 0 for each in tied.values()]),
        margin=_mean([gap > spread for spread, gap, _ in both]),
        hard=_mean([min(gap, other) > spread for spread, gap, other in both]),
        fine=_mean([_fine(min(gap, other), spread) for spread, gap, other in both]),
    )


def _identity(text: str) -> tuple[str, int]:
    form, _, number = text.partition(":")
    if form not in ("ref", "tied") or not number.isdecimal():
        raise DataError(f"The id must be ref:<n> or tied:<n>, got {text!r}.")
    return form, int(number)


def _spans(prompt: RatedPrompt) -> _Spans:
    right, wrong = prompt.ratings[: prompt.correct], prompt.ratings[prompt.correct :]
    if prompt.correct < 1 or not right or not wrong:
        raise DataError(
            f"{prompt.id} needs right and wrong answers, got {prompt.correct} right ones of "
            f"{len(prompt.ratings)}."
        )
    return _Spans(max(right) - min(right), min(right) - max(wrong))


def _fine(gap: float, spread: float) -> float:
    if spread == 0:
        return math.copysign(1.0, gap) if gap else 0.0
    return math.tanh(gap / spread - 1)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
