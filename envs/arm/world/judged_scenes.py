"""Scenes to judge by: responses to a scene's question, of which one reads the detail right."""

from __future__ import annotations

from typing import Any

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Sample
from visenv.worlds.scenes import KINDS, ScenesWorld, SceneTruth

from ..ground_truth import JudgingTruth
from ..samples import judging_sample
from .asked_scenes import asked
from .varied_scenes import VARIED, VariedScenes
from .wordings import STATEMENTS


class JudgedScenes:
    """Makes scenes of `ScenesWorld` with responses to their question, as samples for a judge.

    A `ProceduralSource` of samples made by `judging_sample`. The preset ``"default"`` draws scenes
    of several styles and sizes (`VariedScenes`), and asks in several wordings about a sign that it
    names by its look, its place or another sign (`asked`). All responses of a sample are the same
    sentence but for the decisive detail, so that only looking tells them apart: the right answer is
    drawn evenly from the options, the wrong ones from the rest. One response is right as often as
    not; of several, exactly one is right, and stands anywhere.

    ``Sample.kind`` is the kind of detail. The `JudgingTruth` holds ``target_box`` and
    ``detail_box`` of the sign asked about and ``answer``, the detail.

    Args:
        candidates: Responses to a sample. Kinds with fewer options than that are left out
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
        """Make a sample; a function of the generator's state alone."""
        scene = self.world.sample(rng)
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
