"""Defines a question about a world of entities."""

from __future__ import annotations

from typing import NamedTuple

from visenv.types import Image


class Hop(NamedTuple):
    """Describes one search that the question needs.

    Attributes:
        query: What to search for.
        names: What no query for the same may leave out: the words of a name, a year.
        article: Title of the article that it is to find.
    """

    query: str
    names: tuple[str, ...]
    article: str


class MultiHopQuestion(NamedTuple):
    """A question about an image, which only the articles of a world answer.

    Attributes:
        text: What is asked; it names nothing that the image shows.
        image: What it is asked about.
        hops: The searches, in order: each article names what the next one is about, the last one
            holds the answer.
        answers: The right answer, then other ways to write it.
        options: What the answer might be for one who knows nothing, the right one among it.
        kind: What is to be found out, for reports.
        hard: Whether it counts as hard.
    """

    text: str
    image: Image
    hops: tuple[Hop, ...]
    answers: tuple[str, ...]
    options: tuple[str, ...]
    kind: str
    hard: bool
