"""GradedPairs: an endless supply of responses to compare, whose order of quality is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.scenes import ScenesWorld

from ...ground_truth import JudgingTruth
from ...samples import judging_sample
from .looks import scene_topic
from .responses import GRADES, respond
from .texts import text_topic
from .topic import Topic


class GradedPairs:
    """Responses of different grades to one question, as samples for a judge.

    A `ProceduralSource` of samples made by `judging_sample`. A question asks for two or three
    facts; responses are complete, incomplete, partly wrong or wrong (`GRADES`), best first. Several
    responses have different grades, and the verdict is the best one. A single one is complete and
    True, or partly or wholly wrong and False, as often; it is never incomplete, which is neither.
    The length of a response is drawn without regard to its grade.

    ``Sample.kind`` is the sort of question. The `JudgingTruth` holds the ``grades`` of the
    responses, and for scenes ``target_box`` and ``detail_box`` of the first sign asked about, and
    ``target_boxes`` of all of them.

    Args:
        candidates: Responses to a sample, 1 to 4.
        about: ``"scenes"`` (of `ScenesWorld`: several signs, or one sign and its look) or
            ``"text"`` (no image: numbers, words, people and days).
        preset: A preset of scenes.
        **overrides: Fields of the preset to change.

    Raises:
        UnknownNameError: If there is no such preset or field.
        ConfigurationError: If a value is out of its range.
    """

    ground_truth = JudgingTruth

    def __init__(
        self,
        candidates: int = 2,
        about: Literal["scenes", "text"] = "scenes",
        preset: str = "default",
        **overrides: Any,
    ) -> None:
        if type(candidates) is not int or not 1 <= candidates <= len(GRADES):
            raise ConfigurationError(
                f"candidates must be 1 to {len(GRADES)}, one for each grade, got {candidates!r}."
            )
        if about not in ("scenes", "text"):
            raise UnknownNameError("subject of graded pairs", str(about), ["scenes", "text"])
        self.candidates = candidates
        self.about = about
        self.world = ScenesWorld(preset, **overrides)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone."""
        topic = self._topic(rng)
        grades = self._grades(rng)
        texts = [respond(rng, topic.facts, grade) for grade in grades]
        if self.candidates == 1:
            verdict: bool | int = grades[0] == "complete"
        else:
            verdict = grades.index(max(grades, key=GRADES.index)) + 1
        return judging_sample(
            id=topic.id,
            instruction=topic.question,
            truth=_truth(topic, texts, grades),
            verdict=verdict,
            images=topic.images,
            kind=topic.kind,
        )

    def _topic(self, rng: np.random.Generator) -> Topic:
        return text_topic(rng) if self.about == "text" else scene_topic(self.world.sample(rng))

    def _grades(self, rng: np.random.Generator) -> list[str]:
        """Different grades in any order."""
        if self.candidates > 1:
            return [GRADES[place] for place in rng.permutation(len(GRADES))[: self.candidates]]
        wrong = str(rng.choice(["wrong", "partly wrong"]))
        return ["complete" if rng.random() < 0.5 else wrong]


def _truth(topic: Topic, texts: Sequence[str], grades: Sequence[str]) -> JudgingTruth:
    signs = topic.signs
    return JudgingTruth(
        candidates=tuple(texts),
        grades=tuple(grades),
        target_box=signs[0].box if signs else None,
        detail_box=signs[0].detail_box if signs else None,
        target_boxes=tuple(sign.box for sign in signs),
    )
