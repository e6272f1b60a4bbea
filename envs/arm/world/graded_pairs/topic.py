"""A topic: a question that asks for several facts, each with a right value and wrong ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from visenv.types import Image
from visenv.worlds.scenes import SignTruth


class RequiredFact(NamedTuple):
    """Holds one thing the question asks for.

    Attributes:
        statements: Sentences with one ``{}`` for the value.
        right: The value.
        wrong: Others that one might believe.
    """

    statements: tuple[str, ...]
    right: str
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResponseTopic:
    """Describes what the responses of a sample are about.

    Attributes:
        id: Unique in the world.
        kind: What sort of question it is.
        question: As it is put.
        facts: Two or more that it asks for, in its order.
        images: What it is about.
        signs: The signs of a scene that it asks about; none without a scene.
    """

    id: str
    kind: str
    question: str
    facts: tuple[RequiredFact, ...]
    images: tuple[Image, ...] = ()
    signs: tuple[SignTruth, ...] = ()
