"""Caches the worlds of a preset by seed, and a search engine over the articles of each."""

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
from visenv.search.corpus import Passage
from visenv.search.words import WordSearch, build

from .kinds import MultiHopQuestion
from .paths import HOPS, ask_society
from .society import society_articles, write_society
from .tokens import ask_token, token_articles, write_tokens

SEEDS = 10**9
"""Number of seeds; each seed below it has a world."""

_KEPT = 64
_INDICES_KEPT = 32
"""Number of open indices; each has an open file for every thread that searches it."""
_STREAM = 0xE2717


class WorldGenre(NamedTuple):
    """Describes a kind of world.

    Attributes:
        write: Creates a world.
        articles: Returns the articles of a world.
        ask: Creates a question about a world that needs the given number of searches.
        hops: The possible numbers of searches.
        worlds: Number of worlds of training, and of held-out worlds after them.
        version: The version of the worlds (`visenv.data.source.world_version`).
    """

    write: Callable[[np.random.Generator], Any]
    articles: Callable[[Any], Sequence[Passage]]
    ask: Callable[[np.random.Generator, Any, int], MultiHopQuestion]
    hops: tuple[int, ...]
    worlds: int
    version: int


GENRES = {
    "default": WorldGenre(write_society, society_articles, ask_society, HOPS, SEEDS // 2, 2),
    "tiny": WorldGenre(write_tokens, token_articles, ask_token, (1, 2), 1000, 1),
}
_worlds: SharedCache[str, Any] = SharedCache(_KEPT)


class _Index:
    """Holds an index in a temporary folder; both are removed when it is no longer used.

    SQLite's connections are parts of reference cycles. If the garbage collector had to close
    them, a training run would have hundreds of open files.
    """

    def __init__(self, articles: Sequence[Passage]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="visenv-world-"))
        build(folder, articles)
        self.searcher = WordSearch(folder)
        weakref.finalize(self, _remove, self.searcher, folder, os.getpid())


_indices: SharedCache[str, _Index] = SharedCache(_INDICES_KEPT)
_searching: weakref.WeakSet[WorldEngine] = weakref.WeakSet()
"""The engines that have searched and are not closed; the cache is cleared when the last is closed.
"""


def genre(preset: str) -> WorldGenre:
    """Return the kind of world of that name.

    Raises:
        UnknownNameError: If there is no such kind.
    """
    if preset not in GENRES:
        raise UnknownNameError("preset of entities", str(preset), GENRES)
    return GENRES[preset]


class WorldEngine:
    """Implements a `Searcher` over the articles of one world, by words.

    It stores only a preset and a seed. When a process first searches it, the world is created
    and indexed in a temporary folder. The 64 last worlds and 32 last indices are cached. When the
    last engine that has searched is closed, all indices are removed.

    Args:
        preset: Kind of world.
        seed: The seed of the world, 0 to ``SEEDS - 1``.

    Raises:
        UnknownNameError: If there is no such preset.
        ConfigurationError: If there is no such seed.
    """

    def __init__(self, preset: str = "default", seed: int = 0) -> None:
        self._genre = genre(preset)
        if not (type(seed) is int and 0 <= seed < SEEDS):
            raise ConfigurationError(f"The seed of a world must be 0 to {SEEDS - 1}, got {seed!r}.")
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
        _searching.add(self)
        index = _indices.get(self.name, lambda: _Index(self.articles()))
        return index.searcher.search(query, count)

    def close(self) -> None:
        """Remove all indices, unless another engine uses them."""
        _searching.discard(self)
        if not _searching:
            _indices.clear()

    def _write(self) -> Any:
        return self._genre.write(np.random.default_rng([_STREAM, *self.preset.encode(), self.seed]))

    @override
    def __reduce__(self) -> tuple[type[WorldEngine], tuple[str, int]]:
        return WorldEngine, (self.preset, self.seed)


def _remove(searcher: WordSearch, folder: Path, process: int) -> None:
    searcher.close()
    if os.getpid() == process:  # a forked child must not remove its parent's index
        shutil.rmtree(folder, ignore_errors=True)
