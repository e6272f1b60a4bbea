"""Defines the ground truths of the ARM environments, and creates samples for judging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import JsonValue, Strict
from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.errors import DataError
from visenv.types import GroundTruth, Image, Sample
from visenv.types.ground_truth import STRICT, Box, Boxes, Numbers, Texts

Scale = Annotated[tuple[int, int], Strict(False)]
"""A rating scale, as ``(lowest, highest)``."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class ConstraintCheck:
    """Describes a text check that decides a constraint.

    Attributes:
        name: The name of the check (`visenv.checks`).
        arguments: The JSON-like arguments of the check, without the response.
    """

    name: str
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Tie:
    """Describes the position of a response in a row of RewardBench 2's subset Ties.

    Attributes:
        row: The id of the row.
        place: The index of the response, from 0.
        right: The number of right responses in the row, which come first.
        responses: The number of responses in the row.
    """

    row: str
    place: int
    right: int
    responses: int


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class JudgingTruth(GroundTruth):
    """Holds the ground truth of responses to judge; boxes are in native pixels.

    Attributes:
        candidates: The responses, at least one.
        evidence_pages: The pages of `document` that contain the evidence, from 1.
        gold_query: A query that finds these pages, ``""`` if none is known.
        target_box: The region of the image that the question is about.
        detail_box: The part of `target_box` that decides.
        target_boxes: The regions, if there are several.
        detail_boxes: The part of each of `target_boxes` that decides.
        constraint: The requirement for a response, ``""`` if it is judged otherwise.
        check: The text check that decides the constraint.
        case: The relation of a procedural text to its constraint, for example ``"one too many"``.
        rating: The scale on which one response is rated.
        answer: The fact that decides, ``""`` if it is not known.
        grades: The grade of each response of a procedural sample.
        score: The score that the data set gives to one response.
        source: The source of the row, as named in the data set.
        tie: The position of a response of the subset Ties.
    """

    candidates: Texts
    evidence_pages: Numbers = ()
    gold_query: str = ""
    target_box: Box | None = None
    detail_box: Box | None = None
    target_boxes: Boxes = ()
    detail_boxes: Boxes = ()
    constraint: str = ""
    check: ConstraintCheck | None = None
    case: str = ""
    rating: Scale | None = None
    answer: str = ""
    grades: Texts = ()
    score: float | None = None
    source: str | None = None
    tie: Tie | None = None

    @override
    def right_response(self, answers: Sequence[str]) -> str:
        """Return the right candidate, ``""`` if there is none."""
        if not answers:
            return ""
        if len(self.candidates) == 1:
            return self.candidates[0] if answers[0] == "True" else ""
        return self.candidates[int(answers[0]) - 1]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class DocumentTruth(GroundTruth):
    """Holds the ground truth of a plain question about a document.

    Attributes:
        evidence_pages: The pages that contain the answer, from 1.
        evidence_sources: The kinds of page elements that contain it, for example ``"Table"``.
        answer_format: The format of the answer as published, for example ``"Int"``.
        gold_query: A query that finds the evidence pages, ``""`` if none is known.
        options: Plausible answers for a random guess, including the right one.
    """

    evidence_pages: Numbers = ()
    evidence_sources: Texts = ()
    answer_format: str = ""
    gold_query: str = ""
    options: Texts = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Constraint:
    """Describes one constraint of an instruction.

    Attributes:
        key: The name of the constraint in the data set.
        text: The requirement for a response.
        method: The method of judging it: ``"rule_based"``, ``"direct_gpt"`` or ``"cmp_gpt"``.
        checks: The text checks that together decide it; empty if a language model judges it.
    """

    key: str
    text: str
    method: str
    checks: tuple[ConstraintCheck, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class InstructionTruth(GroundTruth):
    """Holds the ground truth of an instruction.

    Attributes:
        constraints: The constraints that a response must satisfy.
    """

    constraints: tuple[Constraint, ...] = ()


def judging_sample(
    *,
    id: str,  # noqa: A002 - the field of `Sample` has this name
    instruction: str,
    truth: JudgingTruth,
    verdict: bool | int,
    images: Sequence[Image] = (),
    kind: str = "",
) -> Sample:
    """Return a sample for a judge.

    All worlds and data sets of the judging environments create their samples with this function.

    Args:
        id: Unique within its source, stable across runs.
        instruction: The instruction that the candidates respond to.
        truth: The candidates, one (is it right?) or more (which is the best?), and known facts
            about them.
        verdict: Whether the single response is right, or the number of the best one, from 1.
        images: The images of the instruction.
        kind: A label for reports, for example ``"pair_rm"``.

    Returns:
        The sample; ``answers`` is ``("True",)``, ``("False",)`` or the number as text.

    Raises:
        DataError: If the verdict does not match the candidates.
    """
    count = len(truth.candidates)
    single = count == 1
    fits = isinstance(verdict, bool) if single else type(verdict) is int
    if not fits or not (single or 1 <= verdict <= count):
        wanted = "True or False" if single else f"a number from 1 to {count}"
        raise DataError(f"the verdict must be {wanted}, got {verdict!r}")
    return Sample(id, instruction, tuple(images), (str(verdict),), kind, truth)


def candidate_names(sample: Sample) -> list[str]:
    """Return the names of the candidates in prompts and tools (the paper's memory map).

    The name is ``text_0`` for a response that is checked against a constraint and ``resp_0`` for
    another single one; several have the names ``resp_1``, ``resp_2``….
    """
    truth = sample.truth_as(JudgingTruth)
    count = len(truth.candidates)
    if count == 1:
        return ["text_0" if truth.constraint else "resp_0"]
    return [f"resp_{number}" for number in range(1, count + 1)]
