"""Defines ground truths: facts about a sample other than its answers, as frozen dataclasses.

Each family has its own types, which use ``config=STRICT``: the constructor raises pydantic's
`ValidationError` for an unknown field or a value of another type. Values are numbers, strings,
bools, tuples, mappings and dataclasses of this kind, so that a saved episode contains them as JSON
(`visenv.records`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated

from pydantic import ConfigDict, Strict
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
"""The configuration of all ground truths. Fields with one of the following types also accept lists,
because rows of data files have no tuples.
"""

Number = int | float
Texts = Annotated[tuple[str, ...], Strict(False)]
Numbers = Annotated[tuple[int, ...], Strict(False)]
Box = Annotated[tuple[Number, Number, Number, Number], Strict(False)]
"""``(left, top, right, bottom)``; right and bottom are exclusive."""
Boxes = Annotated[tuple[Box, ...], Strict(False)]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class GroundTruth:
    """Holds the fields of all ground truths that the core reads.

    Attributes:
        labels: Groups for reports, which replace `Sample.kind`: grouping -> group, for example
            ``{"split": "hard"}``.
        document: The name of the sample's document in the ``library`` of its source, ``""`` if it
            has no document.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    document: str = ""

    def right_response(self, answers: Sequence[str]) -> str:
        """Return the right response to the question, or ``""`` if it is not known.

        Args:
            answers: `Sample.answers`.
        """
        return Counter(answers).most_common(1)[0][0] if answers else ""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class QuestionTruth(GroundTruth):
    """Holds the ground truth of a question about an image; boxes are in original pixels.

    Attributes:
        options: All possible answers of a multiple-choice question.
        target_box: The box of the object in question.
        target_boxes: The boxes, if there are several objects; `target_box` then contains all of
            them.
        target_objects: The names of the objects in these boxes.
        detail_box: The part of `target_box` that shows the answer.
    """

    options: Texts = ()
    target_box: Box | None = None
    target_boxes: Boxes = ()
    target_objects: Texts = ()
    detail_box: Box | None = None
