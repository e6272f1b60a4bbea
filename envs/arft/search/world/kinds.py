"""A kind of entity: the facts about it, the questions about it, and its images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np


class Relation(NamedTuple):
    """A fact in the article of an entity. ``{}`` stands for the entity.

    Attributes:
        target: The kind of entity that it leads to; ``""`` for a plain fact.
        sentences: Ways to state it, with ``{value}``.
        question: How it is asked about.
        query: What to search for.
        phrase: What it leads to, in words; ``""`` for a plain fact.
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
        phrase: What the entity is called by one who sees the image, for example "the city whose
            coat of arms this is".
        query: What to search for, with ``{}`` for what distinguishes it: its name is not shown.
        sentence: How the article describes it.
    """

    phrase: str
    query: str = ""
    sentence: str = ""


class EntityKind(NamedTuple):
    """A kind of entity.

    Attributes:
        population: How many there are in a world.
        opening: First sentence of an article.
        relations: Its facts, by name.
        named: An image with the name written on it.
        looks: An image that shows only what the article describes; None where there is none.
        charges: What such an image may show.
    """

    population: int
    opening: str
    relations: Mapping[str, Relation]
    named: Appearance
    looks: Appearance | None = None
    charges: tuple[str, ...] = ()
