"""Defines a kind of entity: its facts, the questions about it, and its images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np


class Relation(NamedTuple):
    """Describes a fact in the article of an entity. ``{}`` is replaced by the entity.

    Attributes:
        target: The kind of the linked entity; ``""`` for a plain fact.
        sentences: Sentences that state the fact, with ``{value}``.
        question: The question about the fact.
        query: The query that finds the fact.
        phrase: A phrase that refers to the linked entity; ``""`` for a plain fact.
        value: Draws a plain fact.
    """

    target: str
    sentences: tuple[str, ...]
    question: str
    query: str
    phrase: str = ""
    value: Callable[[np.random.Generator], str] | None = None


class Appearance(NamedTuple):
    """Describes how an image shows an entity.

    Attributes:
        phrase: A phrase that refers to the entity by its image, for example "the city whose
            coat of arms this is".
        query: The query that finds the entity, with ``{}`` for its distinguishing feature; its
            name is not shown.
        sentence: The sentence of the article that describes the image.
    """

    phrase: str
    query: str = ""
    sentence: str = ""


class EntityKind(NamedTuple):
    """Describes a kind of entity.

    Attributes:
        population: Number of entities in a world.
        opening: First sentence of an article.
        relations: The facts about an entity of this kind, by name.
        named: Draws an image that contains the name.
        looks: Draws an image with only the features that the article describes; may be None.
        charges: The figures of such an image.
    """

    population: int
    opening: str
    relations: Mapping[str, Relation]
    named: Appearance
    looks: Appearance | None = None
    charges: tuple[str, ...] = ()
