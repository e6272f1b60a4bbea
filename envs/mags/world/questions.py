"""Creates the question of a scene, with its answer and the details of each sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visenv.worlds.scenes.signs import Sign

from .layout import place_signs
from .presets import SceneDifficulty

_WITH = {
    "colour": "with {} stripes",
    "text": "that says {}",
    "object": "with a {}",
    "number": "with the number {}",
}
_MANY = {
    "colour": "have {} stripes",
    "text": "say {}",
    "object": "show a {}",
    "number": "have the number {}",
}
_ATTRIBUTES = {
    "colour": "What color are the stripes on {}?",
    "text": "What is written on {}?",
    "object": "What is drawn on {}?",
    "number": "Which number is on {}?",
}


class SceneDraft(NamedTuple):
    """Describes a scene before it is rendered.

    Attributes:
        kind: The kind of question.
        detail: The kind of detail on the signs, ``"colour"`` or ``"text"``.
        question: The text of the question.
        answer: The right answer.
        options: All possible answers.
        signs: All signs of the scene.
        values: The detail of each sign.
        targets: The indices in `signs` of the signs that the question is about.
        evidence: The indices in `signs` of the signs that must be looked at.
    """

    kind: str
    detail: str
    question: str
    answer: str
    options: tuple[str, ...]
    signs: list[Sign]
    values: list[str]
    targets: tuple[int, ...]
    evidence: tuple[int, ...]


def make_scene(rng: np.random.Generator, scenes: SceneDifficulty) -> SceneDraft:
    """Return a scene with a question; kinds, details and answers are drawn uniformly."""
    kind = scenes.kinds[int(rng.integers(len(scenes.kinds)))]
    detail = scenes.details[int(rng.integers(len(scenes.details)))]
    return _MAKERS[kind](rng, scenes, detail)


def _counting(rng: np.random.Generator, scenes: SceneDifficulty, detail: str) -> SceneDraft:
    count = scenes.signs[1]
    counted = int(rng.integers(count + 1))
    signs = place_signs(rng, scenes, count, together=count)
    value, *others = _drawn(rng, scenes, detail)
    matching = sorted(int(place) for place in rng.permutation(count)[:counted])
    values = [
        value if place in matching else others[int(rng.integers(len(others)))]
        for place in range(count)
    ]
    return SceneDraft(
        "counting",
        detail,
        f"How many signs {_MANY[detail].format(value)}?",
        str(counted),
        tuple(str(number) for number in range(count + 1)),
        signs,
        values,
        tuple(matching),
        tuple(range(count)),
    )


def _relation(rng: np.random.Generator, scenes: SceneDifficulty, detail: str) -> SceneDraft:
    signs = place_signs(rng, scenes, _count(rng, scenes, least=2), together=2)
    first, second, *others = _drawn(rng, scenes, detail)
    # The first two signs are compared. The order in which the question names them is random, so
    # that the two answers are equally likely for any positions of the signs.
    pair = [first, second] if rng.random() < 0.5 else [second, first]
    values = pair + [others[int(rng.integers(len(others)))] for _ in signs[2:]]
    axis, relation = [(0, "to the left of"), (1, "above")][int(rng.integers(2))]
    one, other = (signs[values.index(value)].box for value in (first, second))
    holds = one[axis] < other[axis]
    named = [f"the sign {_WITH[detail].format(value)}" for value in (first, second)]
    return SceneDraft(
        "relation",
        detail,
        f"Is {named[0]} {relation} {named[1]}?",
        "yes" if holds else "no",
        ("yes", "no"),
        signs,
        values,
        (0, 1),
        tuple(range(len(signs))),
    )


def _attribute(rng: np.random.Generator, scenes: SceneDifficulty, detail: str) -> SceneDraft:
    signs = place_signs(rng, scenes, _count(rng, scenes), together=1)
    options = scenes.values(detail)
    values = [options[int(rng.integers(len(options)))] for _ in signs]
    return SceneDraft(
        "attribute",
        detail,
        _ATTRIBUTES[detail].format(signs[0].name),
        values[0],
        options,
        signs,
        values,
        (0,),
        (0,),
    )


_MAKERS: dict[str, Callable[[np.random.Generator, SceneDifficulty, str], SceneDraft]] = {
    "counting": _counting,
    "relation": _relation,
    "attribute": _attribute,
}


def _count(rng: np.random.Generator, scenes: SceneDifficulty, least: int = 1) -> int:
    fewest, most = scenes.signs
    return int(rng.integers(max(least, fewest), most + 1))


def _drawn(rng: np.random.Generator, scenes: SceneDifficulty, detail: str) -> list[str]:
    """Return all values of a detail in random order."""
    options = scenes.values(detail)
    return [options[place] for place in rng.permutation(len(options)).tolist()]
