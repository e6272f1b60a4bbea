"""Defines the teacher of ArftSearch, which stops one search too early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.grammar import ParsedTurn
from visenv.teacher import GIVING_UP, LapsingTeacher

from . import prompts

if TYPE_CHECKING:
    import numpy as np

    from .env import ArftSearch


@dataclass(frozen=True)
class StopsEarly(LapsingTeacher["ArftSearch"]):
    """Leaves out the last search, and answers with the name that the search before it found.

    If the question needs a single search, the teacher gives up without one.
    """

    summary: ClassVar[str] = (
        "Leaves out the last search and answers with the name that the search before it found, or "
        "gives up if there was none, in 60 % of the episodes."
    )

    @override
    def mistaken_turn(self, env: ArftSearch, rng: np.random.Generator) -> ParsedTurn:
        left = env.queries_left()
        if len(left) > 1:
            return env.oracle_turn()
        names, asked = env.truth.names, env.done("search")
        answer = " ".join(names[-1]) if names and asked else GIVING_UP
        return ParsedTurn(prompts.knowing(answer, env.is_brief), answer=answer)
