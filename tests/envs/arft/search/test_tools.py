"""Tests the search tool: its results, and the calls that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arft.search.tools import PassageSearch
from visenv.errors import ConfigurationError, ServiceError, ToolError
from visenv.search import Passage
from visenv.search.corpus import LONGEST_QUERY
from visenv.tools.base import Store


class Engine:
    name = "engine"

    def __init__(self, *found: Passage, error: Exception | None = None) -> None:
        self.found = list(found)
        self.error = error

    def search(self, query: str, count: int) -> list[Passage]:
        if self.error:
            raise self.error
        return self.found[:count]

    def close(self) -> None:
        raise AssertionError("the engine is shared")


def test_passages_are_numbered_with_their_titles() -> None:
    tool = PassageSearch(Engine(Passage("One", "first"), Passage("Two", "second")), passages=2)
    result = tool.run({"query": "q"}, Store())
    assert result.parts == ("1. One: first\n2. Two: second",)
    assert result.detail == {"query": "q", "titles": ["One", "Two"]}
    tool.close()


def test_long_passages_are_cut() -> None:
    (text,) = (
        PassageSearch(Engine(Passage("t" * 999, "x" * 9999))).run({"query": "q"}, Store()).parts
    )
    assert isinstance(text, str)
    assert len(text) == len("1. : ") + 200 + 1000


def test_search_refuses_empty_results_and_a_failed_engine_is_a_service_error() -> None:
    with pytest.raises(ToolError, match="Nothing was found for 'q'"):
        PassageSearch(Engine()).run({"query": "q"}, Store())
    with pytest.raises(ServiceError, match="search: down"):
        PassageSearch(Engine(error=ServiceError("search", "down"))).run({"query": "q"}, Store())
    with pytest.raises(ConfigurationError, match="passages must be at least 1"):
        PassageSearch(Engine(), passages=0)


@pytest.mark.parametrize("raw", [{}, {"query": ""}, {"query": 3}, {"q": "x"}, {"query": "x" * 501}])
def test_search_refuses_other_arguments(raw: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="search takes query"):
        PassageSearch(Engine(Passage("a", "b"))).run(raw, Store())


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_search_answers_any_arguments(raw: dict[str, Any]) -> None:
    tool = PassageSearch(Engine(Passage("a", "b")))
    accepted = raw.keys() == {"query"} and isinstance(raw["query"], str) and raw["query"]
    if accepted and len(raw["query"]) <= LONGEST_QUERY:
        assert tool.run(raw, Store()).parts
    else:
        with pytest.raises(ToolError, match="search takes query"):
            tool.run(raw, Store())


def test_examples_and_random_arguments_are_accepted() -> None:
    tool = PassageSearch(Engine(Passage("a", "b")))
    arguments = tool.random_arguments(np.random.default_rng(0), Store())
    for each in (tool.example(), arguments):
        assert tool.run(each.model_dump(), Store()).parts
