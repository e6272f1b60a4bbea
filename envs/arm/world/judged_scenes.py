"""Creates scenes with responses to a question, one of which names the right detail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Sample
from visenv.worlds.scenes import KINDS, ScenesWorld, SceneTruth
from visenv.worlds.scenes.asked import asked
from visenv.worlds.scenes.world import VARIED, VariedScenes

from ..ground_truth import JudgingTruth, judging_sample

STATEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "colour": (
        "The stripes on {sign} are {answer}.",
        "On {sign} I see {answer} stripes.",
        "They are {answer}: that is the colour of the stripes on {sign}.",
        "Looking closely at {sign}, its stripes are painted {answer}.",
    ),
    "text": (
        'The writing on {sign} is "{answer}".',
        'On {sign} it says "{answer}".',
        'It reads "{answer}", in outlined letters on {sign}.',
        'Looking closely at {sign}, one can read "{answer}".',
    ),
    "count": (
        "The number of rings on {sign} is {answer}.",
        "Rings on {sign}: {answer}.",
        "I counted the rings on {sign} and came to {answer}.",
        "Looking closely at {sign}, the rings add up to {answer}.",
    ),
    "relation": (
        "On {sign}, the triangle is to the {answer} of the circle.",
        "The triangle on {sign} stands on the {answer}, the circle beside it.",
        "To the {answer}: that is where the triangle on {sign} is, seen from the circle.",
        "Looking closely at {sign}, the triangle comes to the {answer} of the circle.",
    ),
}
"""Wordings of statements of an answer."""


class JudgedScenes:
    """Creates scenes of `ScenesWorld` with responses to their question, as samples for a judge.

    This is a `ProceduralSource` of samples made by `judging_sample`. The preset ``"default"`` draws
    scenes of several styles and sizes (`VariedScenes`), and uses several wordings that refer to a
    sign by its look, its position or another sign (`asked`). All responses of a sample are the same
    sentence except for the deciding detail, so that only the image distinguishes them: the right
    answer is drawn uniformly from the options, the wrong ones from the rest. A single response is
    right with probability 1/2; of several, exactly one is right, at a random position.

    ``Sample.kind`` is the kind of detail. The `JudgingTruth` contains ``target_box`` and
    ``detail_box`` of the sign in question and ``answer``, the detail.

    Args:
        candidates: Number of responses of a sample. Kinds with fewer options are excluded
            (``"relation"`` has two).
        preset: A preset of scenes.
        **overrides: Fields of the preset to change.

    Raises:
        UnknownNameError: If there is no such preset or field.
        ConfigurationError: If a value is out of its range, or no kind has enough options.
    """

    ground_truth = JudgingTruth

    def __init__(self, candidates: int = 2, preset: str = VARIED, **overrides: Any) -> None:
        if type(candidates) is not int or candidates < 1:
            raise ConfigurationError(f"candidates must be 1 or more, got {candidates!r}.")
        kinds = ScenesWorld(preset, **overrides).preset.kinds
        enough = tuple(kind for kind in kinds if len(KINDS[kind].options) >= candidates)
        if not enough:
            most = max(len(KINDS[kind].options) for kind in kinds)
            raise ConfigurationError(
                f"{candidates} candidates need a kind of detail with as many options; "
                f"{', '.join(kinds)} have at most {most}."
            )
        self.candidates = candidates
        self.world = VariedScenes(preset, **{**overrides, "kinds": enough})

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a sample, which depends only on the state of the generator."""
        return self._judged(rng, self.world.sample(rng))

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a sample about a scene that `sample` never creates."""
        return self._judged(rng, self.world.sample_held_out(rng))

    def _judged(self, rng: np.random.Generator, scene: Sample) -> Sample:
        seen = scene.truth_as(SceneTruth)
        truth, kind = scene.answers[0], scene.kind
        others = [option for option in seen.options if option != truth]
        wrong = [str(answer) for answer in rng.permutation(others)]
        if self.candidates == 1:
            verdict: bool | int = bool(rng.random() < 0.5)
            answers = [truth if verdict else wrong[0]]
        else:
            place = int(rng.integers(self.candidates))
            answers = wrong[: self.candidates - 1]
            answers.insert(place, truth)
            verdict = place + 1
        sign, question = asked(rng, scene, self.world.is_varied)
        statement = str(rng.choice(STATEMENTS[kind]))
        return judging_sample(
            id=scene.id,
            instruction=question,
            truth=JudgingTruth(
                candidates=tuple(statement.format(sign=sign, answer=answer) for answer in answers),
                target_box=seen.target_box,
                detail_box=seen.detail_box,
                answer=truth,
            ),
            verdict=verdict,
            images=scene.images,
            kind=kind,
        )
