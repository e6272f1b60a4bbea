"""Makes queries imprecise, as the teacher of ArftSearch does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .ground_truth import SearchTruth
from .world.library import SEEDS, WorldEngine

if TYPE_CHECKING:
    import numpy as np


def imprecise_query(
    truth: SearchTruth, number: int, mistaken: float, rng: np.random.Generator
) -> str:
    """Return a query without a random word of its name, or with another word in its place.

    The other word has the same place in a title of a random world. The word is left out if the name
    is a description, not a title, or if no title has another word in its place. A query whose name
    has fewer than two words is returned as it is.

    Args:
        truth: The ground truth of a question.
        number: The number of the query in it, from 0.
        mistaken: The probability that a word is replaced instead of left out, 0 to 1.
        rng: Random numbers.
    """
    words, name = truth.queries[number].split(), truth.names[number]
    places = _places(words, name)
    if len(places) < 2:
        return truth.queries[number]
    chosen = int(rng.integers(len(places)))
    others: list[str] = []
    if truth.world is not None and truth.articles[number].split() == [*name]:
        seed = int(rng.integers(SEEDS))
        if rng.random() < mistaken:
            others = _other_words(WorldEngine(truth.world.preset, seed), name, chosen)
    place = places[chosen]
    words[place : place + 1] = [str(rng.choice(others))] if others else []
    return " ".join(words)


def _places(words: Sequence[str], name: Sequence[str]) -> list[int]:
    """Return the place of each word of a name in a query, as near to its end as possible.

    The list is empty if the query does not contain the words in the order of the name.
    """
    places: list[int] = []
    end = len(words)
    for part in reversed(name):
        found = [place for place in range(end) if words[place] == part]
        if not found:
            return []
        end = found[-1]
        places.append(end)
    return places[::-1]


def _other_words(world: WorldEngine, name: Sequence[str], place: int) -> list[str]:
    """Return the words that titles as long as a name have at a place where the name has another."""
    titles = [article.title.split() for article in world.articles()]
    same_length = [title for title in titles if len(title) == len(name)]
    return [title[place] for title in same_length if title[place] != name[place]]
