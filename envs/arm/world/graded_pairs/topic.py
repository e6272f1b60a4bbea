"""Defines a topic: a question that requires several facts, each with right and wrong values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from visenv.types import Image
from visenv.worlds.scenes import SignTruth


class RequiredFact(NamedTuple):
    """Describes one fact that the question requires.

    Attributes:
        statements: Sentences with one ``{}`` for the value.
        right: The right value.
        wrong: Plausible wrong values.
    """

    statements: tuple[str, ...]
    right: str
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResponseTopic:
    """Describes the subject of a sample's responses.

    Attributes:
        id: Unique in the world.
        kind: The kind of question.
        question: The text of the question.
        facts: Two or more facts that it requires, in its order.
        images: The images of the question.
        signs: The signs of a scene that it asks about; empty without a scene.
    """

    id: str
    kind: str
    question: str
    facts: tuple[RequiredFact, ...]
    images: tuple[Image, ...] = ()
    signs: tuple[SignTruth, ...] = ()
