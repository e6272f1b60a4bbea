"""Creates questions about images that need the articles of a fictional world."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Sample
from visenv.worlds.draws import checked_range, pick
from visenv.worlds.recent import RECENT

from ..ground_truth import SearchTruth, WorldId
from .library import SEEDS, WorldEngine, genre


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
