"""EntitiesWorld: questions about images that only the articles of a made-up world answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Sample
from visenv.worlds.draws import pick
from visenv.worlds.recent import RECENT

from ..ground_truth import SearchTruth, WorldId
from .library import SEEDS, WorldEngine, genre

WORLDS = (0, 1000)
"""First seed of a world, and the one after the last."""


class EntitiesWorld:
    """Multi-hop questions about images, with the searches that lead to the answer.

    A `ProceduralSource`. Each question is about one world of many, and what holds in one does not
    hold in another: nothing can be learned by heart. Worlds of other seeds are other worlds:
    training on the first 1,000 and evaluating on ``worlds=(1000, 1100)`` shares no fact.

    Presets:
        ``"default"``: people, cities, companies, novels, operas and bridges, 129 to a world, a
        third of them near doubles of another; images with a name on them, and coats of arms,
        emblems and portraits without; 1 to 3 searches (`visenv.envs.arft.search.world.society`).
        Hard are questions of 3 searches, and of 2 about an image without a name.
        ``"tiny"``: colored shapes, who owns them and where they live, in articles of three words
        (`visenv.envs.arft.search.world.tokens`); 1 or 2 searches, hard those of 2.

    `Sample.ground_truth` is a `SearchTruth`; its ``split`` is ``"simple"`` or ``"hard"``.

    Args:
        preset: Kind of world.
        worlds: Seeds of the worlds: the first, and the one after the last.
        hops: Numbers of searches that questions may take; None allows all that there are.

    Raises:
        UnknownNameError: If there is no such preset.
        ConfigurationError: If the seeds are no range, or no question takes so many searches.
    """

    ground_truth = SearchTruth

    def __init__(
        self,
        preset: str = "default",
        *,
        worlds: Sequence[int] = WORLDS,
        hops: Sequence[int] | None = None,
    ) -> None:
        self._ask = genre(preset).ask
        known = genre(preset).hops
        self.hops = tuple(known if hops is None else hops)
        if not self.hops or not set(self.hops) <= set(known):
            raise ConfigurationError(f"hops must be among {list(known)}, got {hops!r}.")
        self.preset = preset
        self.worlds = _checked_range(worlds)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone.

        Samples made lately are kept, so that the members of a group share one.
        """
        return RECENT.sample((self.preset, self.worlds, self.hops), rng, self._make)

    def _make(self, rng: np.random.Generator) -> Sample:
        engine = WorldEngine(self.preset, int(rng.integers(*self.worlds)))
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


def _checked_range(worlds: Sequence[int]) -> tuple[int, int]:
    given = tuple(worlds)
    if len(given) == 2 and 0 <= given[0] < given[1] <= SEEDS:
        return given
    raise ConfigurationError(
        f"worlds must be two seeds from 0 to {SEEDS}, the first below the second; got {given}."
    )
