"""One task instance: what an episode is about, and what a right answer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from visenv.types.image import Image


@dataclass(frozen=True, slots=True)
class Sample:
    """One question with its images and ground truth.

    Attributes:
        id: Unique within its source, stable across runs.
        question: What is asked, as the data set words it.
        images: Image handles, in order.
        answers: Every accepted answer (TextVQA has ten human ones); may be empty for a task whose
            truth lives in `meta`.
        kind: A label to report by, for example ``"colour"`` or ``"direct_attributes"``.
        meta: Further ground truth, JSON-like: boxes ``[left, top, right, bottom]`` in native
            pixels, options, evidence pages, gold queries.
    """

    id: str
    question: str
    images: tuple[Image, ...] = ()
    answers: tuple[str, ...] = ()
    kind: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
