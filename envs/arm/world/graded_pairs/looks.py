"""Creates topics about scenes: the details of several signs, or of one sign and its look."""

from __future__ import annotations

from collections.abc import Iterable

from visenv.types import Sample
from visenv.worlds.scenes import KINDS, SceneTruth, SignTruth
from visenv.worlds.scenes.signs import FRAMES, SHAPES

from ..judged_scenes import STATEMENTS
from .topic import RequiredFact, ResponseTopic

_MOST_SIGNS = 3


def scene_topic(scene: Sample) -> ResponseTopic:
    """Return the topic of a scene of `ScenesWorld`."""
    signs = scene.truth_as(SceneTruth).signs[:_MOST_SIGNS]
    names = [sign.name for sign in signs] if len(signs) > 1 else ["the sign"]
    asked = [KINDS[scene.kind].question.format(sign=name) for name in names]
    facts = [
        _detail(scene.kind, name, sign.answer) for name, sign in zip(names, signs, strict=True)
    ]
    if len(signs) == 1:
        asked.append("What colour is its frame, and what shape has it?")
        facts += _look(signs[0])
    return ResponseTopic(
        scene.id,
        scene.kind,
        " ".join(asked),
        tuple(facts),
        scene.images,
        signs,
    )


def _detail(kind: str, name: str, right: str) -> RequiredFact:
    statements = tuple(each.format(sign=name, answer="{}") for each in STATEMENTS[kind])
    return RequiredFact(statements, right, _others(KINDS[kind].options, right))


def _look(sign: SignTruth) -> list[RequiredFact]:
    frame, shape = sign.frame, sign.shape
    return [
        RequiredFact(
            ("Its frame is {}.", "The frame round it is {}."), frame, _others(FRAMES, frame)
        ),
        RequiredFact(("Its shape is {}.", "In shape it is {}."), shape, _others(SHAPES, shape)),
    ]


def _others(options: Iterable[str], right: str) -> tuple[str, ...]:
    return tuple(option for option in options if option != right)
