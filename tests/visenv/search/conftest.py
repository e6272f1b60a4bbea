"""Builds small corpora, and their indexes."""

from __future__ import annotations

from pathlib import Path

import pytest

from visenv.search import Passage
from visenv.search.words import build

ARTICLES = [
    Passage("Kastor Works", "Kastor Works was founded by Mira Tolen in 2020 in Ravensby.", "a://1"),
    Passage("Mira Tolen", "Mira Tolen is an engineer. She was born in Ostrava.", "a://2"),
    Passage("Ravensby", "Ravensby is a city on the river Lune with a stone bridge.", "a://3"),
    Passage("Stone bridge", "The stone bridge was built in 1821 of granite.", "a://4"),
    Passage("Mira Tolan", "Mira Tolan paints rivers in Ravensby.", "a://5"),
]


@pytest.fixture(scope="session")
def articles() -> list[Passage]:
    return ARTICLES


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index for word search; tests must not change it."""
    folder = tmp_path_factory.mktemp("index")
    build(folder, ARTICLES)
    return folder
