"""Defines the teacher of ArftSearch, whose queries are imprecise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import GIVING_UP, LapsingTeacher

from . import prompts

if TYPE_CHECKING:
    import numpy as np

    from .env import ArftSearch


@dataclass(frozen=True)
class ImpreciseQuery(LapsingTeacher["ArftSearch"]):
    """Leaves out a word of each name that it searches for, and gives up unless it is lucky.

    It is lucky if the first result is the article that it needs. A name of one word is searched for
    as it is. The thought before a search contains the whole query.
    """

    summary: ClassVar[str] = (
        "Leaves out one random word of each name of several words that it searches for, and gives "
        "up if the first result is another article."
    )
    rate: float = 1.0

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
        query, names = truth.queries[len(found)], truth.names[len(found)]
        call = ToolCall("search", {"query": _without_a_word(query, names, rng)})
        return ParsedTurn(prompts.wondering(query, env.is_brief), (call,))


def _without_a_word(query: str, required: Sequence[str], rng: np.random.Generator) -> str:
    """Return a query without one of the required words; the same query if fewer than two occur."""
    words = query.split()
    places = [place for place, word in enumerate(words) if word in required]
    if len(places) < 2:
        return query
    left_out = int(rng.choice(places))
    return " ".join(word for place, word in enumerate(words) if place != left_out)
