"""Ground truths: what is known about a sample beside its answers, as frozen dataclasses.

Each family has types of its own, made with ``config=STRICT``: the constructor raises pydantic's
`ValidationError` for an unknown field or a value of another type. Values are numbers, texts, bools,
tuples, mappings and further such dataclasses, so that a saved episode holds them as JSON
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
"""The configuration of all ground truths. Lists are accepted where a field has a type from below:
rows of data files have no tuples."""

Number = int | float
Texts = Annotated[tuple[str, ...], Strict(False)]
Numbers = Annotated[tuple[int, ...], Strict(False)]
Box = Annotated[tuple[Number, Number, Number, Number], Strict(False)]
"""``(left, top, right, bottom)``; right and bottom are exclusive."""
Boxes = Annotated[tuple[Box, ...], Strict(False)]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class GroundTruth:
    """Base of all ground truths: the fields that the core reads.

    Attributes:
        labels: Groups to report by, in place of `Sample.kind`: grouping -> group, for example
            ``{"split": "hard"}``.
        document: The name of the document that the sample is about in the ``library`` of its
            source, ``""`` if it is about none.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    document: str = ""

    def right_response(self, answers: Sequence[str]) -> str:
        """Return the response to the question that is right, ``""`` if none is known.

        Args:
            answers: `Sample.answers`.
        """
        return Counter(answers).most_common(1)[0][0] if answers else ""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class QuestionTruth(GroundTruth):
    """Holds the ground truth of a question about an image; boxes are in native pixels.

    Attributes:
        options: All possible answers, if there is a choice.
        target_box: Where the image shows what the question is about.
        target_boxes: The same, if it is in several places; `target_box` is then around them all.
        target_objects: The names of what is in these places.
        detail_box: The part of `target_box` that an answer must be read from.
    """

    options: Texts = ()
    target_box: Box | None = None
    target_boxes: Boxes = ()
    target_objects: Texts = ()
    detail_box: Box | None = None
