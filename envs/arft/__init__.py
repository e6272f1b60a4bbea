"""The Visual-ARFT family: agents that repair images by code, and that search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import gymnasium as gym

from visenv.data.source import Source
from visenv.env import Observation
from visenv.search import Searcher

from . import making, search_making
from .search_making import SearchSettings
from .settings import Settings

__all__ = ["SearchSettings", "Settings", "make_coding", "make_search"]


def make_coding(
    *,
    data: str | Source = "procedural",
    problems: Sequence[str] | None = None,
    seed: int = 0,
    **settings: Unpack[Settings],
) -> gym.Env[Observation, str]:
    """Make ``visenv/ArftCoding-v0``.

    Args:
        data: ``"procedural"`` (documents and scenes with something wrong),
            ``"mat_coding:<folder>"`` (the benchmark, or what ``visenv data distort`` made), any
            other data set of questions about one image, such as ``"textvqa:<folder>"``, whose
            images are then distorted, or a `Source` of samples that are distorted already.
        problems: What is to be wrong, each as often, for example ``["dark", "rotation90+noise"]``;
            by default as in the paper's training set. Not for samples that are distorted already.
        seed: Of the distortions of a data set's images.
        **settings: See `Settings`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
        DataError: If the data set cannot be read.
    """
    return making.make(data, problems, seed, settings)


def make_search(
    *,
    data: str | Source = "procedural",
    search: str | Searcher = "world",
    similarity: str | None = None,
    hops: Sequence[int] | None = None,
    **settings: Unpack[SearchSettings],
) -> gym.Env[Observation, str]:
    """Make ``visenv/ArftSearch-v0``.

    Args:
        data: ``"procedural"`` (made-up worlds of linked entities), a data set such as
            ``"mat_search:<folder>"`` or ``"hotpotqa:<folder>"``, or a `Source`.
        search: ``"world"``, the articles of the procedural world that a sample is from; an engine
            by name (`visenv.search.open_searcher`), such as ``"words:<index>"`` or ``"serper"``; or
            a `Searcher`. Data sets need one of the latter two.
        similarity: How queries are compared with the gold ones for the reward: ``"words"``, the
            default, which needs nothing; ``"meaning"``, by a sentence encoder; or ``"published"``,
            the same as the paper has it, which takes 2020 for 2021, and the default with
            ``compat="arft"``. See `visenv.rewards.similarity`.
        hops: How many searches the questions take, for example ``[1]``; by default as many as the
            world has. Procedural questions alone.
        **settings: See `SearchSettings` and `Settings`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
        DataError: If the data set or the index cannot be read.
    """
    return search_making.make(data, search, similarity, hops, settings)
