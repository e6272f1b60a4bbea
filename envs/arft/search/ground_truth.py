"""The ground truth of ArftSearch: the searches that lead to an answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types import QuestionTruth
from visenv.types.ground_truth import STRICT, Texts


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class WorldId:
    """The procedural world that a question is about: the arguments of its `WorldEngine`.

    Attributes:
        preset: The kind of world.
        seed: Its seed.
    """

    preset: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class SearchTruth(QuestionTruth):
    """Ground truth of a question that searches answer; empty where the data set does not tell.

    Attributes:
        queries: What to search for, in an order in which it can be asked.
        names: What each of the queries may not leave out.
        articles: The titles of the articles that hold the answer.
        split: The name of the split, for example ``"hard"``.
        world: The world whose articles are searched, of a procedural question.
    """

    queries: Texts = ()
    names: Annotated[tuple[Texts, ...], Strict(False)] = ()
    articles: Texts = ()
    split: str = ""
    world: WorldId | None = None
