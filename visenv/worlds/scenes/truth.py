"""Defines the ground truth of a scene."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT, Box, QuestionTruth


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class SignTruth:
    """Describes one sign of a scene.

    Attributes:
        name: The name of the sign in questions.
        frame: The name of the color of its frame.
        shape: The name of its shape.
        answer: The detail on it.
        box: The box around it, native pixels.
        detail_box: The panel that holds the detail, native pixels.
    """

    name: str
    frame: str
    shape: str
    answer: str
    box: Box
    detail_box: Box


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class SceneTruth(QuestionTruth):
    """Holds the ground truth of a scene; `target_box` and `detail_box` belong to the asked sign.

    Attributes:
        signs: All signs; the question is about the first.
    """

    signs: tuple[SignTruth, ...]
