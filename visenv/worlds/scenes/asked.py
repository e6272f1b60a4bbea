"""Creates scenes of several styles and sizes with plain questions in several wordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from visenv.types import Sample
from visenv.worlds.draws import pick
from visenv.worlds.scenes.truth import SceneTruth, SignTruth
from visenv.worlds.scenes.world import PLACES, VARIED, VariedScenes

QUESTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "colour": (
        "What colour are the stripes on {sign}?",
        "Which colour do the stripes on {sign} have?",
        "Name the colour of the stripes that are painted on {sign}.",
        "Somebody painted stripes on {sign}. In what colour?",
        "Look for {sign}: what is the colour of its stripes?",
    ),
    "text": (
        "What is written on {sign}?",
        "Read the writing on {sign}.",
        "Which word or number stands on {sign}?",
        "What does it say on {sign}?",
        "Look for {sign}: what can be read on it?",
    ),
    "count": (
        "How many rings are on {sign}?",
        "Count the rings on {sign}.",
        "What is the number of rings on {sign}?",
        "Somebody drew rings on {sign}. How many?",
        "Look for {sign}: how many rings does it show?",
    ),
    "relation": (
        "On {sign}, is the triangle to the left or to the right of the circle?",
        "On which side of the circle is the triangle on {sign}, left or right?",
        "Is the triangle on {sign} left or right of the circle?",
        "Seen from the circle on {sign}, is the triangle on the left or on the right?",
        "Look for {sign}: does its triangle stand left or right of its circle?",
    ),
}
"""Wordings of questions; the first is that of the world of scenes."""

_NEARER = 0.8
"""Maximum ratio of the distances to the nearest and to the second nearest sign."""

_APART = 0.5
"""Minimum lead of the sign that is farthest to a side, relative to its own width."""


def refer(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return a phrase that matches only the first of the signs.

    Args:
        rng: Draws one of the possible phrases.
        signs: All signs of a scene, with different looks; a single one is ``"the sign"``.
    """
    if len(signs) == 1:
        return "the sign"
    ways = [_by_look, _beside, _beside, _by_part, _by_place, _by_nearness]  # often beside another
    return pick(rng, ways)(rng, signs) or _by_look(rng, signs)


def _by_look(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    return signs[0].name


def _beside(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return the look of the sign, and its position relative to another sign."""
    asked, other = signs[0], pick(rng, signs[1:])
    (x, y), (other_x, other_y) = _middle(asked), _middle(other)
    if abs(x - other_x) >= abs(y - other_y):
        side = "to the left of" if x < other_x else "to the right of"
    else:
        side = "above" if y < other_y else "below"
    return f"{asked.name} {side} {other.name}"


def _by_part(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return the frame or the shape of a sign alone, if no other sign has the same."""
    asked, others = signs[0], signs[1:]
    parts = [f"the {asked.frame} sign"] * all(each.frame != asked.frame for each in others)
    parts += [f"the {asked.shape} sign"] * all(each.shape != asked.shape for each in others)
    return pick(rng, parts) if parts else ""


def _by_place(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return a phrase with the edge of the image to which the sign is the nearest of all."""
    asked, others = _middle(signs[0]), [_middle(each) for each in signs[1:]]
    margin = _APART * (signs[0].box[2] - signs[0].box[0])
    sides: list[tuple[str, Callable[[tuple[float, float]], float]]] = [
        ("the sign farthest to the left", lambda place: -place[0]),
        ("the sign farthest to the right", lambda place: place[0]),
        ("the uppermost sign", lambda place: -place[1]),
        ("the lowermost sign", lambda place: place[1]),
    ]
    fitting = [
        words for words, far in sides if far(asked) > max(far(each) for each in others) + margin
    ]
    return pick(rng, fitting) if fitting else ""


def _by_nearness(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return a phrase with a sign to which this sign is the nearest, if there is one."""
    asked = signs[0]
    near = [
        other
        for other in signs[1:]
        if all(
            _distance(asked, other) <= _NEARER * _distance(third, other)
            for third in signs[1:]
            if third is not other
        )
    ]
    return f"the sign nearest to {pick(rng, near).name}" if near and len(signs) > 2 else ""


def _middle(sign: SignTruth) -> tuple[float, float]:
    left, top, right, bottom = sign.box
    return (left + right) / 2, (top + bottom) / 2


def _distance(one: SignTruth, other: SignTruth) -> float:
    return float(np.hypot(*np.subtract(_middle(one), _middle(other))))


class AskedScenes:
    """Creates scenes of `VariedScenes` with their questions, in several wordings.

    This is a `ProceduralSource`. The preset ``"default"`` uses several wordings, and refers to a
    sign by its look, its position or another sign (`refer`); other presets ask as `ScenesWorld`
    does. `Sample.kind` is the kind of detail; `Sample.ground_truth` is a `SceneTruth`.

    Args:
        preset: A preset of scenes.
        **overrides: Fields of the preset to change.

    Raises:
        UnknownNameError: If there is no such preset or field.
        ConfigurationError: If a value is out of its range.
    """

    ground_truth = SceneTruth
    styles: ClassVar[Sequence[str]] = PLACES
    """The styles of varied scenes; subclasses may have others."""

    def __init__(self, preset: str = VARIED, **overrides: Any) -> None:
        self.world = VariedScenes(preset, self.styles, **overrides)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a scene with its question, which depends only on the state of the generator."""
        return self._asked(rng, self.world.sample(rng))

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a scene that `sample` never creates, with its question."""
        return self._asked(rng, self.world.sample_held_out(rng))

    def _asked(self, rng: np.random.Generator, scene: Sample) -> Sample:
        _, question = asked(rng, scene, self.world.is_varied)
        return replace(scene, question=question)


def asked(rng: np.random.Generator, scene: Sample, is_varied: bool) -> tuple[str, str]:
    """Return a phrase for the sign that a scene is about, and the question about it.

    Args:
        rng: Draws the phrase and the wording for a varied scene.
        scene: A scene of `VariedScenes`.
        is_varied: Whether to use several phrases and wordings; otherwise those of the scene.
    """
    signs = scene.truth_as(SceneTruth).signs
    if not is_varied:
        return (signs[0].name if len(signs) > 1 else "the sign"), scene.question
    sign = refer(rng, signs)
    return sign, pick(rng, QUESTIONS[scene.kind]).format(sign=sign)
