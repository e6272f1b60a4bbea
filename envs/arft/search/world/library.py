"""The worlds of a preset by their seed, and a search engine over the articles of each."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.cache import SharedCache
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.search.passage import Passage
from visenv.search.words import WordSearch, build

from .paths import HOPS, ask_society
from .question import MultiHopQuestion
from .society import society_articles, write_society
from .tokens import ask_token, token_articles, write_tokens

SEEDS = 10**9
"""Every seed below this has a world."""

_KEPT = 64
_INDICES_KEPT = 32
"""Each has an open file for every thread that searches it."""
_STREAM = 0xE2717


class WorldGenre(NamedTuple):
    """A kind of world.

    Attributes:
        write: Makes a world.
        articles: What can be read about it.
        ask: Makes a question about it that takes so many searches.
        hops: How many searches there can be.
    """

    write: Callable[[np.random.Generator], Any]
    articles: Callable[[Any], Sequence[Passage]]
    ask: Callable[[np.random.Generator, Any, int], MultiHopQuestion]
    hops: tuple[int, ...]


GENRES = {
    "default": WorldGenre(write_society, society_articles, ask_society, HOPS),
    "tiny": WorldGenre(write_tokens, token_articles, ask_token, (1, 2)),
}
_worlds: SharedCache[str, Any] = SharedCache(_KEPT)


class _Index:
    """An index in a folder of its own. It is closed and removed when it is no longer used.

    SQLite's connections are parts of cycles: left to the garbage collector, a training run would
    hold hundreds of open files.
    """

    def __init__(self, articles: Sequence[Passage]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="visenv-world-"))
        build(folder, articles)
        self.searcher = WordSearch(folder)
        weakref.finalize(self, _remove, self.searcher, folder, os.getpid())


_indices: SharedCache[str, _Index] = SharedCache(_INDICES_KEPT)


def genre(preset: str) -> WorldGenre:
    """Return the kind of world of that name.

    Raises:
        UnknownNameError: If there is none.
    """
    if preset not in GENRES:
        raise UnknownNameError("preset of entities", str(preset), GENRES)
    return GENRES[preset]


class WorldEngine:
    """A `Searcher` over the articles of one world, by words.

    It is a name and a seed: the world is written, and its index made in a temporary folder, when a
    process first searches it. The 64 worlds used last are kept, and the indices of 32.

    Args:
        preset: Kind of world.
        seed: Of the world, 0 to ``SEEDS - 1``.

    Raises:
        UnknownNameError: If there is no such preset.
        ConfigurationError: If there is no such seed.
    """

    def __init__(self, preset: str = "default", seed: int = 0) -> None:
        self._genre = genre(preset)
        if not (type(seed) is int and 0 <= seed < SEEDS):
            raise ConfigurationError(f"A world's seed is 0 to {SEEDS - 1}, got {seed!r}.")
        self.preset = preset
        self.seed = seed
        self.name = f"world:{preset}:{seed}"

    @property
    def world(self) -> Any:
        """Return the entities of the world."""
        return _worlds.get(self.name, self._write)

    def articles(self) -> Sequence[Passage]:
        """Return all articles, to build another index from."""
        return self._genre.articles(self.world)

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the best articles for a query.

        Raises:
            ServiceError: If the index is damaged.
        """
        index = _indices.get(self.name, lambda: _Index(self.articles()))
        return index.searcher.search(query, count)

    def close(self) -> None:
        """Leave the index open, because it is shared."""

    def _write(self) -> Any:
        return self._genre.write(np.random.default_rng([_STREAM, *self.preset.encode(), self.seed]))

    @override
    def __reduce__(self) -> tuple[type[WorldEngine], tuple[str, int]]:
        return WorldEngine, (self.preset, self.seed)


def _remove(searcher: WordSearch, folder: Path, process: int) -> None:
    searcher.close()
    if os.getpid() == process:  # a forked child leaves its parent's alone
        shutil.rmtree(folder, ignore_errors=True)
