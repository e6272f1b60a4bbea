"""Creates an unlimited number of responses to compare, whose order of quality is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.draws import drawn_scene
from visenv.worlds.scenes.signs import FRAMES, SHAPES
from visenv.worlds.scenes.world import VARIED, VariedScenes, lacks_looks

from ...ground_truth import JudgingTruth, judging_sample
from .responses import Claims, draw_patterns, grade_of, respond
from .topics import RequiredFact, ResponseTopic, scene_topic, text_topic

MOST_CANDIDATES = 4


class GradedPairs:
    """Creates responses of graded quality to one question, as samples for a judge.

    This is a `ProceduralSource` of samples made by `judging_sample`. A question requires two or
    three facts. Of several responses, one has fewer flaws than all others, where wrong statements
    count before omitted facts (`Flaws`), and the verdict is that one. Each response has the same
    probability of being the best, independent of the statements (`draw_patterns`). A single
    response is complete and True, or partly or wholly wrong and False, with equal probability; it
    is never incomplete, because that is neither. The length of a response is drawn independently of
    its statements.

    ``Sample.kind`` is the kind of question. The `JudgingTruth` contains the ``grades`` of the
    responses (`GRADES`), and for scenes ``target_box`` and ``detail_box`` of the first sign of the
    question, and ``target_boxes`` and ``detail_boxes`` of all of them.

    Args:
        candidates: Number of responses of a sample, 1 to 4.
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
        preset: str = VARIED,
        **overrides: Any,
    ) -> None:
        if type(candidates) is not int or not 1 <= candidates <= MOST_CANDIDATES:
            raise ConfigurationError(
                f"candidates must be 1 to {MOST_CANDIDATES}, got {candidates!r}."
            )
        if about not in ("scenes", "text"):
            raise UnknownNameError("subject of graded pairs", str(about), ["scenes", "text"])
        self.candidates = candidates
        self.about = about
        # If every sign looks alike, its look could be guessed without the image.
        looks = {"frames": tuple(FRAMES), "shapes": tuple(SHAPES)} if lacks_looks(preset) else {}
        self.world = VariedScenes(preset, **{**looks, **overrides})

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a sample, which depends only on the state of the generator."""
        return self._graded(rng, self._topic(rng, held_out=False))

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a sample about a scene or a question that `sample` never creates."""
        return self._graded(rng, self._topic(rng, held_out=True))

    def _graded(self, rng: np.random.Generator, topic: ResponseTopic) -> Sample:
        claims, verdict = self._claims(rng, topic.facts)
        texts = [respond(rng, topic.facts, each) for each in claims]
        grades = [grade_of(topic.facts, each) for each in claims]
        return judging_sample(
            id=topic.id,
            instruction=topic.question,
            truth=_truth(topic, texts, grades),
            verdict=verdict,
            images=topic.images,
            kind=topic.kind,
        )

    def _topic(self, rng: np.random.Generator, held_out: bool) -> ResponseTopic:
        if self.about == "text":
            return drawn_scene(lambda: text_topic(rng), held_out, key=lambda topic: topic.question)
        world = self.world
        return scene_topic(world.sample_held_out(rng) if held_out else world.sample(rng))

    def _claims(
        self, rng: np.random.Generator, facts: Sequence[RequiredFact]
    ) -> tuple[list[Claims], bool | int]:
        """Return the stated values of each response, and the verdict."""
        wrong = [str(rng.choice(fact.wrong)) for fact in facts]
        if self.candidates == 1:
            is_right = [True] * len(facts)
            verdict = bool(rng.random() < 0.5)
            if not verdict:
                some = rng.permutation(len(facts))[: rng.integers(1, len(facts) + 1)]
                is_right = [place not in some for place in range(len(facts))]
            said = zip(facts, wrong, is_right, strict=True)
            return [[fact.right if right else other for fact, other, right in said]], verdict
        drawn = draw_patterns(rng, len(facts), self.candidates)
        values = [
            {right: fact.right, not right: other}
            for fact, other, right in zip(facts, wrong, drawn.truth, strict=True)
        ]
        claims: list[Claims] = [
            [
                None if side is None else both[side]
                for both, side in zip(values, pattern, strict=True)
            ]
            for pattern in drawn.patterns
        ]
        return claims, drawn.best + 1


def _truth(topic: ResponseTopic, texts: Sequence[str], grades: Sequence[str]) -> JudgingTruth:
    signs = topic.signs
    return JudgingTruth(
        candidates=tuple(texts),
        grades=tuple(grades),
        target_box=signs[0].box if signs else None,
        detail_box=signs[0].detail_box if signs else None,
        target_boxes=tuple(sign.box for sign in signs),
        detail_boxes=tuple(sign.detail_box for sign in signs),
    )
