"""Defines kinds of entities, with their facts and images, and the questions about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from visenv.types import Image


class Hop(NamedTuple):
    """Describes one search that the question needs.

    Attributes:
        query: The gold query.
        names: The words that an equivalent query must contain: a name, a year.
        article: The title of the article that the query finds.
    """

    query: str
    names: tuple[str, ...]
    article: str


class MultiHopQuestion(NamedTuple):
    """Describes a question about an image that needs the articles of a world.

    Attributes:
        text: The question; it names nothing that the image shows.
        image: The image that shows the first entity.
        hops: The searches, in order: each article names the subject of the next one, and the
            last one contains the answer.
        answers: The right answer, then other ways to write it.
        options: Plausible answers for a random guess, including the right one.
        kind: The kind of answer, for reports.
        hard: Whether it counts as hard.
    """

    text: str
    image: Image
    hops: tuple[Hop, ...]
    answers: tuple[str, ...]
    options: tuple[str, ...]
    kind: str
    hard: bool


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
