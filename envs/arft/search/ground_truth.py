"""Defines the ground truth of ArftSearch: the searches that lead to an answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types import QuestionTruth
from visenv.types.ground_truth import STRICT, Texts


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class WorldId:
    """Identifies the procedural world of a question, by the arguments of its `WorldEngine`.

    Attributes:
        preset: The kind of world.
    """

    preset: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class SearchTruth(QuestionTruth):
    """Holds the ground truth of a question that needs searches; unknown fields are empty.

    Attributes:
        queries: The gold queries, in an order in which they can be asked.
        names: For each query, the words that an equivalent query must contain.
        articles: The titles of the articles that contain the answer.
        split: The name of the split, for example ``"hard"``.
        world: The world whose articles are searched, for a procedural question.
    """

    queries: Texts = ()
    names: Annotated[tuple[Texts, ...], Strict(False)] = ()
    articles: Texts = ()
    split: str = ""
    world: WorldId | None = None
