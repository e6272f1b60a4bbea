"""The ground truth of a scene."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT, Box, QuestionTruth


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class SignTruth:
    """One sign of a scene.

    Attributes:
        name: The words by which a question refers to it.
        frame: The name of its color.
        shape: The name of its shape.
        answer: The detail on it.
        box: Its extent in native pixels.
        detail_box: The panel that holds the detail, in native pixels.
    """

    name: str
    frame: str
    shape: str
    answer: str
    box: Box
    detail_box: Box


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class SceneTruth(QuestionTruth):
    """Ground truth of a scene: `target_box` and `detail_box` are those of the sign asked about.

    Attributes:
        signs: All signs; the question is about the first.
    """

    signs: tuple[SignTruth, ...]
