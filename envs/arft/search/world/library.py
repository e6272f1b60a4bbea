"""Creates questions about images that need the articles of a fictional world, and caches worlds."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.cache import SharedCache
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.search.corpus import Passage
from visenv.search.words import WordSearch, build
from visenv.types import Sample
from visenv.worlds.draws import checked_range, pick
from visenv.worlds.recent import RECENT

from ..ground_truth import SearchTruth, WorldId
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


class EntitiesWorld:
    """Creates multi-hop questions about images, with the searches that lead to the answer.

    This is a `ProceduralSource`. Each question is about one of many worlds. Facts differ between
    worlds, so that a policy cannot memorize them. Held-out samples (`sample_held_out`) are about
    other worlds, and share no fact with the others.

    Presets:
        ``"default"``: people, cities, companies, novels, operas and bridges, 129 per world, a
        third of them similar to another one; images with a name, and coats of arms, emblems and
        portraits without; 1 to 3 searches (`visenv.envs.arft.search.world.society`). There are half
        a billion worlds, so that two samples rarely have the same one. Questions of
        3 searches, and of 2 about an image without a name, are hard.
        ``"tiny"``: colored shapes, their owners and the owners' homes, in articles of three words
        (`visenv.envs.arft.search.world.tokens`); 1 or 2 searches; those of 2 are hard. There are
        1,000 worlds.

    `Sample.ground_truth` is a `SearchTruth`; its ``split`` is ``"simple"`` or ``"hard"``.

    Args:
        preset: Kind of world.
        worlds: The range of seeds of the worlds of all samples, as (first, last + 1); None draws
            those of the preset, and others for held-out samples.
        hops: The allowed numbers of searches; None allows all numbers of the preset.

    Raises:
        UnknownNameError: If there is no such preset.
        ConfigurationError: If the seeds are not a range, or no question needs so many searches.
    """

    ground_truth = SearchTruth

    def __init__(
        self,
        preset: str = "default",
        *,
        worlds: Sequence[int] | None = None,
        hops: Sequence[int] | None = None,
    ) -> None:
        self._ask = genre(preset).ask
        known = genre(preset).hops
        self.hops = tuple(known if hops is None else hops)
        if not self.hops or not set(self.hops) <= set(known):
            raise ConfigurationError(f"hops must be among {list(known)}, got {hops!r}.")
        self.preset = preset
        count, self.world_version = genre(preset).worlds, genre(preset).version
        self.worlds = checked_range("worlds", (0, count) if worlds is None else worlds, SEEDS)
        self.held_out_worlds = self.worlds if worlds is not None else (count, 2 * count)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Create a sample, which depends only on the state of the generator.

        Recent samples are cached, so that the members of a group share one.
        """
        return self._sample(rng, self.worlds)

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Create a sample about a world that no sample of training is about."""
        return self._sample(rng, self.held_out_worlds)

    def _sample(self, rng: np.random.Generator, worlds: tuple[int, int]) -> Sample:
        made = partial(self._make, worlds=worlds)
        return RECENT.sample((self.preset, worlds, self.hops), rng, made)

    def _make(self, rng: np.random.Generator, worlds: tuple[int, int] | None = None) -> Sample:
        engine = WorldEngine(self.preset, int(rng.integers(*(worlds or self.worlds))))
        question = self._ask(rng, engine.world, pick(rng, self.hops))
        split = "hard" if question.hard else "simple"
        return Sample(
            id=f"{self.preset}-{engine.seed}/{int(rng.integers(2**63)):016x}",
            question=question.text,
            images=(question.image,),
            answers=question.answers,
            kind=question.kind,
            ground_truth=SearchTruth(
                queries=tuple(hop.query for hop in question.hops),
                names=tuple(tuple(hop.names) for hop in question.hops),
                articles=tuple(hop.article for hop in question.hops),
                split=split,
                labels={"split": split, "hops": str(len(question.hops))},
                options=tuple(question.options),
                world=WorldId(preset=engine.preset, seed=engine.seed),
            ),
        )
