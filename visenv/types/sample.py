"""Sample: one task instance with its ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from visenv.types.image import Image


@dataclass(frozen=True, slots=True)
class Sample:
    """One question with its images and ground truth.

    Attributes:
        id: An identifier that is unique within the source and stable across runs.
        question: The question, as the data set words it.
        images: Image handles, in order.
        answers: Every accepted answer (TextVQA has ten human ones); may be empty for a task whose
            truth lies in `ground_truth`.
        kind: A label to report by, for example ``"color"`` or ``"direct_attributes"``.
        meta: Further ground truth, JSON-like: boxes ``[left, top, right, bottom]`` in native
            pixels, options, evidence pages, gold queries.
        ground_truth: Further ground truth as a frozen dataclass of the family: boxes ``[left, top,
            right, bottom]`` in native pixels, options, evidence pages, gold queries.
    """

    id: str
    question: str
    images: tuple[Image, ...] = ()
    answers: tuple[str, ...] = ()
    kind: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    ground_truth: Any = None
