"""Defines the teacher of ArftSearch, whose queries are imprecise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import GIVING_UP, LapsingTeacher

from . import prompts
from .ground_truth import SearchTruth
from .world.library import SEEDS, WorldEngine

if TYPE_CHECKING:
    import numpy as np

    from .env import ArftSearch


@dataclass(frozen=True)
class ImpreciseQuery(LapsingTeacher["ArftSearch"]):
    """Leaves out or mistakes a word of each name, and gives up unless it is lucky.

    It is lucky if the first result is the article that it needs. A name of one word is searched for
    as it is. The thought before a search contains the whole query, and no query of an episode with
    the mistake contains the whole name.

    Attributes:
        mistaken: The share of the names in which a random word is replaced by one of a title in
            another world, 0 to 1. The other names lose the word.

    Raises:
        ConfigurationError: If `mistaken` is not in this range.
    """

    summary: ClassVar[str] = (
        "Leaves out one random word of each name of several words that it searches for, or "
        "mistakes it for another word, and gives up if the first result is another article."
    )
    rate: float = 1.0
    mistaken: float = 0.5

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.mistaken <= 1:
            raise ConfigurationError(f"mistaken must be from 0 to 1, got {self.mistaken!r}.")

    @override
    def mistaken_turn(self, env: ArftSearch, rng: np.random.Generator) -> ParsedTurn:
        truth, searches = env.truth, env.done("search")
        if not truth.articles or len(truth.names) != len(truth.queries):
            return env.oracle_turn()  # a row of a data set, whose articles are not known
        found = [call.detail["titles"][:1] for call in searches]
        is_lucky = found == [[title] for title in truth.articles[: len(found)]]
        is_done = len(found) == len(truth.queries)
        if is_done or not is_lucky or env.turns_left <= 1:
            answer = env.sample.answers[0] if is_done and is_lucky else GIVING_UP
            return ParsedTurn(prompts.knowing(answer, env.is_brief), answer=answer)
        query = truth.queries[len(found)]
        call = ToolCall("search", {"query": self._imprecise(truth, len(found), rng)})
        return ParsedTurn(prompts.wondering(query, env.is_brief), (call,))

    def _imprecise(self, truth: SearchTruth, number: int, rng: np.random.Generator) -> str:
        """Return a query without a word of its name, or with another word in its place.

        The query is returned as it is if its name has fewer than two words. The word is left out if
        the name is a description, not a title, or if no title has another word in its place.
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
        is_mistaken = bool(others) and rng.random() < self.mistaken
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
