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
    """Return a query without a word of its name, or with another word in its place.

    The query is returned as it is if its name has fewer than two words. The word is left out if
    the name is a description, not a title, or if no title has another word in its place.

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
        others = _words_of_titles(truth.world.preset, chosen, len(name), rng)
    others = [word for word in others if word != name[chosen]]
    place = places[chosen]
    is_mistaken = bool(others) and rng.random() < mistaken
    words[place : place + 1] = [str(rng.choice(others))] if is_mistaken else []
    return " ".join(words)


def _places(words: Sequence[str], name: Sequence[str]) -> list[int]:
    """Return the places of the words of a name in a query, which ends with it or contains them."""
    places: list[int] = []
    end = len(words)
    for part in reversed(name):
        found = [place for place in range(end) if words[place] == part]
        if not found:
            return []
        end = found[-1]
        places.append(end)
    return places[::-1]


def _words_of_titles(preset: str, place: int, count: int, rng: np.random.Generator) -> list[str]:
    """Return the words at a place of the titles of `count` words in a random world."""
    world = WorldEngine(preset, int(rng.integers(SEEDS)))
    titles = [article.title.split() for article in world.articles()]
    return [title[place] for title in titles if len(title) == count]
