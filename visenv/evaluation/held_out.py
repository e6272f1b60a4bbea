"""Evaluating a policy: which episodes are played, so that every item gives one."""

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
    """`count` seeds that no training run draws: a stream of their own, the same in every run."""
    return seeds(np.random.SeedSequence([_HELD_OUT, stream]), count)


def places(env: Env, episodes: int | None) -> list[EpisodeSpec]:
    """What to play: rows of a finite source in order, otherwise held-out seeds.

    Args:
        env: The environment, to know its source.
        episodes: How many; None plays every row of a finite source, or 256 scenes.
    """
    base = env.unwrapped
    source = base.source if isinstance(base, VisEnv) else None
    if isinstance(source, IndexedSource):
        count = len(source) if episodes is None else min(episodes, len(source))
        return [EpisodeSpec(seed=index, group=index, index=index) for index in range(count)]
    held_out = held_out_seeds(256 if episodes is None else episodes)
    return [EpisodeSpec(seed, group) for group, seed in enumerate(held_out)]


def evaluate(
    collector: Collector,
    env: Env,
    episodes: int | None = None,
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play the evaluation episodes of `env`'s source with the collector's policy."""
    return collector.episodes(places(env, episodes), on_episode)
