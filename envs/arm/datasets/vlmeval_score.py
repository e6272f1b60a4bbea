"""Scores answers to VLMEvalKit's data sets by rule, and computes WeMath's score of problems."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from pydantic.dataclasses import dataclass

from visenv.rewards.choice import choice_score, chosen_letters
from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import canonical, comparable
from visenv.text.replies import stated
from visenv.types import Episode, QuestionTruth, Sample
from visenv.types.ground_truth import STRICT

TOLERANCE = 1e-6
"""Maximum difference of two equal numbers (VLMEvalKit's comparison of MathVision)."""

_NUMBER = re.compile(
    r"[+-]?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:e[+-]?\d{1,2}|/[+-]?\d{1,15})?", re.IGNORECASE
)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3}){1,5}(?!\d|,)")
_UNIT = re.compile(
    r"(?<=[\d.])\s?(?:%|°|[mck]?m[²³]?|mm[²³]?|[mk]?g|lb|oz|in|ft|[mk]?l|s|min|h|hours?|days?|years?"
    r"|degrees?|units?|meters?|inch(?:es)?|feet|square \w{1,12}|(?:cm|mm|m|km|in|ft)\^[23]|[€£$])"
    r"(?:/(?:s|h|min|m)[²³]?)?$"
)
"""A unit behind a number. The reference is a plain number, in the unit of the question."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class VlmEvalTruth(QuestionTruth):
    """Holds the ground truth of a row in VLMEvalKit's TSV layout.

    Attributes:
        answer_kind: The kind of comparison: ``"choice"``, ``"letters"`` (several may be right
            together; digits count as letters), ``"number"`` or ``"open"``.
        exact: Whether an answer must equal the right one, so that a judge extracts it and does not
            compare meanings.
        judged_question: The question for a judge, if the question is part of the image.
        problem: WeMath: the number of the problem.
        step: WeMath: the step of the problem, for example ``"2steps_multi"``.
    """

    answer_kind: Literal["choice", "letters", "number", "open"] = "open"
    exact: bool = False
    judged_question: str = ""
    problem: str = ""
    step: str = ""


def vlmeval_score(answer: str, sample: Sample) -> float:
    r"""Return 1 if the answer is right by the rule of its kind, otherwise 0.

    - A choice must select the right option (`visenv.rewards.choice`).
    - Letters must be the same, in any order (`visenv.rewards.choice.chosen_letters`).
    - A number or an open answer must be the same number within `TOLERANCE`, also as a fraction, or
      the same text (`visenv.text.normalize.comparable`). If there is ``\boxed{}``, only its content
      counts. A unit after a number does not count. VLMEvalKit compares ``float(answer)``, which
      reads a sign and an exponent, too; it rounds to no precision.
    """
    truth, reference = sample.truth_as(VlmEvalTruth), sample.answers[0]
    if is_too_long(answer):
        return 0.0
    if truth.answer_kind == "choice":
        return choice_score(answer, reference, truth.options)
    if truth.answer_kind == "letters":
        return float(chosen_letters(answer) == chosen_letters(reference) != "")
    given, wanted = (comparable(stated(canonical(text)).text) for text in (answer, reference))
    if truth.answer_kind == "number":
        given = _UNIT.sub("", given)
    return float(_same(given, wanted))


def wemath_totals(played: Sequence[tuple[Episode, Sample]]) -> dict[str, float]:
    """Return WeMath's score of whole problems, strict and loose (Qiao et al., arXiv 2407.01284).

    A problem of two or three steps is asked step by step, and as a whole. If all steps are right
    and the whole is wrong, it is inadequate generalization (IG). If a step and the whole are wrong,
    it is insufficient knowledge (IK). If a step is wrong (loose: every step) and the whole is
    right, it is rote memorization (RM). The score is ``1 - (0.5 IG + RM + IK) / problems``.

    Args:
        played: Episodes with their samples. An aborted episode is wrong. Episodes of other data
            sets, and problems with a missing step, are ignored.
    """
    steps: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for episode, sample in played:
        truth = sample.truth_as(VlmEvalTruth)
        number, _, step = truth.step.partition("steps_")
        if number in ("2", "3") and truth.problem:
            steps[truth.problem, number][step] = episode.metrics.get("accuracy") == 1.0
    whole = {
        key: (right["multi"], [right[each] for each in _steps(key[1])])
        for key, right in steps.items()
        if set(right) == {"multi", *_steps(key[1])}
    }
    if not whole:
        return {}
    lost = {"strict": 0.0, "loose": 0.0}
    for right, parts in whole.values():
        if right:
            lost["strict"] += not all(parts)
            lost["loose"] += not any(parts)
        else:
            for name in lost:
                lost[name] += 0.5 if all(parts) else 1.0
    return {f"WeMath ({name})": 1 - value / len(whole) for name, value in lost.items()}


def _steps(number: str) -> list[str]:
    """Return the names of the steps of a problem with this number of steps, from ``"1"``."""
    return [str(each) for each in range(1, int(number) + 1)]


def _same(given: str, reference: str) -> bool:
    one, other = _number(given), _number(reference)
    if one is None or other is None:
        return given == reference != ""
    return math.isclose(one, other, rel_tol=0.0, abs_tol=TOLERANCE)


def _number(text: str) -> float | None:
    plain = text.removeprefix("$").strip()
    if _THOUSANDS.match(plain):
        plain = plain.replace(",", "")
    if not _NUMBER.fullmatch(plain):
        return None
    try:
        return float(Fraction(plain)) if "/" in plain and "." not in plain else float(plain)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
