"""Defines a question about a world of entities."""

from __future__ import annotations

from typing import NamedTuple

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
