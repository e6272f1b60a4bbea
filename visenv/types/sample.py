"""Defines `Sample`, one task instance with its ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from visenv.errors import DataError
from visenv.types.image import Image

TruthT = TypeVar("TruthT")


@dataclass(frozen=True, slots=True)
class Sample:
    """Holds one question with its images and ground truth.

    Attributes:
        id: An identifier that is unique within the source and stable across runs.
        question: The question, in the words of the data set.
        images: Image handles, in order.
        answers: All accepted answers (TextVQA has ten human answers); may be empty for a task whose
            ground truth is in `ground_truth`.
        kind: A label by which results are grouped, for example ``"color"`` or
            ``"direct_attributes"``.
        ground_truth: Further ground truth, a frozen dataclass of the family
            (`visenv.types.ground_truth`), or None if there is none.
    """

    id: str
    question: str
    images: tuple[Image, ...] = ()
    answers: tuple[str, ...] = ()
    kind: str = ""
    ground_truth: Any = None

    def truth_as(self, kind: type[TruthT]) -> TruthT:
        """Return `ground_truth`, which must be of the type `kind`; ``kind()`` if it is None.

        Raises:
            DataError: If it has another type, or is None and `kind` has fields without a default.
        """
        truth = self.ground_truth
        if isinstance(truth, kind):
            return truth
        if truth is None:
            try:
                return kind()
            except (TypeError, ValueError):  # a field without a default
                pass
        given = "no ground truth" if truth is None else f"a {type(truth).__name__}"
        raise DataError(f"Sample {self.id!r} must have a {kind.__name__}, but it has {given}.")
