"""The ground truths of the ARM family: judging, questions about documents, and instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import JsonValue, Strict
from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.types import GroundTruth
from visenv.types.ground_truth import STRICT, Box, Boxes, Numbers, Texts

Scale = Annotated[tuple[int, int], Strict(False)]
"""``(lowest, highest)`` rating."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class ConstraintCheck:
    """A text check that decides a constraint.

    Attributes:
        name: The name of the check (`visenv.checks`).
        arguments: Its arguments without the response, JSON-like.
    """

    name: str
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Tie:
    """The place of a response among those of a row of RewardBench 2's subset Ties.

    Attributes:
        row: The id of the row.
        place: The number of the response, from 0.
        right: How many of the row's responses are right; they are the first ones.
        responses: How many responses the row has.
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
        evidence_pages: The pages of `document` that decide, from 1.
        gold_query: A query that finds these pages, ``""`` if none is known.
        target_box: Where the image shows what the question is about.
        detail_box: The part of `target_box` that decides.
        target_boxes: The same, if it is in several places.
        detail_boxes: The part of each of `target_boxes` that decides.
        constraint: What a response has to fulfil, ``""`` if it is judged otherwise.
        check: The text check that decides the constraint.
        case: How a procedural text stands to its constraint, for example ``"one too many"``.
        rating: The scale on which one response is rated.
        answer: The fact that decides, ``""`` if it is not known.
        grades: The grade of each response of a procedural sample.
        score: The score that the data set gives to one response.
        source: Where the data set has the row from.
        tie: The place of a response of the subset Ties.
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
        """Return the candidate that is right, ``""`` if there is none."""
        if not answers:
            return ""
        if len(self.candidates) == 1:
            return self.candidates[0] if answers[0] == "True" else ""
        return self.candidates[int(answers[0]) - 1]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class DocumentTruth(GroundTruth):
    """Holds the ground truth of a plain question about a document.

    Attributes:
        evidence_pages: The pages that hold the answer, from 1.
        evidence_sources: What holds it there, for example ``"Table"``.
        answer_format: The format of the answer as published, for example ``"Int"``.
        gold_query: A query that finds the evidence pages, ``""`` if none is known.
        options: Answers that a policy without knowledge might give, the right one among them.
    """

    evidence_pages: Numbers = ()
    evidence_sources: Texts = ()
    answer_format: str = ""
    gold_query: str = ""
    options: Texts = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Constraint:
    """Holds one constraint of an instruction.

    Attributes:
        key: Its name in the data set.
        text: What a response has to fulfil.
        method: How it is judged: ``"rule_based"``, ``"direct_gpt"`` or ``"cmp_gpt"``.
        checks: The text checks that decide it together; none if a language model judges it.
    """

    key: str
    text: str
    method: str
    checks: tuple[ConstraintCheck, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class InstructionTruth(GroundTruth):
    """Holds the ground truth of an instruction.

    Attributes:
        constraints: Its constraints.
    """

    constraints: tuple[Constraint, ...] = ()
