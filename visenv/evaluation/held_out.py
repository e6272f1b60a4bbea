"""Selects the episodes of an evaluation, and plays them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visenv.data.source import IndexedSource
from visenv.env import VisEnv
from visenv.rollout import Collector, Env, EpisodeSpec
from visenv.seeding import seeds
from visenv.types import Episode

_HELD_OUT = 0x5EED_0E7A


def held_out_seeds(count: int, stream: int = 0) -> list[int]:
    """Return `count` seeds that no training run uses, from a separate fixed stream."""
    return seeds(np.random.SeedSequence([_HELD_OUT, stream]), count)


def places(
    env: Env, episodes: int | None = None, *, seed: int = 0, repeats: int = 1
) -> list[EpisodeSpec]:
    """Return the episodes to play: all rows of a finite source in order, or held-out scenes.

    Args:
        env: The environment whose source is used.
        episodes: Number of samples; None means every row of a finite source, or 256 scenes.
        seed: Seed of the held-out scenes and of the sampling of the policy.
        repeats: Number of times that each sample is played, each time with other random numbers of
            the policy.
    """
    base = env.unwrapped
    source = base.source if isinstance(base, VisEnv) else None
    rows = len(source) if isinstance(source, IndexedSource) else None
    wanted = (rows or 256) if episodes is None else episodes
    held_out = held_out_seeds(wanted if rows is None else min(wanted, rows), seed)
    return [
        EpisodeSpec(each, group, member, None if rows is None else group)
        for group, each in enumerate(held_out)
        for member in range(repeats)
    ]


def evaluate(
    collector: Collector,
    env: Env,
    episodes: int | None = None,
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play the evaluation episodes of `env`'s source with the collector's policy."""
    return collector.episodes(places(env, episodes), on_episode)
