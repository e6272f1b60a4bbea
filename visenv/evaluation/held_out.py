"""Selects the episodes of an evaluation, and plays them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visenv.data.source import HeldOutSource, IndexedSource, rows_of
from visenv.env import VisEnv
from visenv.rollout import Collector, Env, EpisodeSpec
from visenv.seeding import HELD_OUT, seeds
from visenv.types import Episode

_HELD_OUT_STREAM = 0x5EED_0E7A


def held_out_seeds(count: int, stream: int = 0) -> list[int]:
    """Return `count` seeds that no training run uses, from a separate fixed stream."""
    return seeds(np.random.SeedSequence([_HELD_OUT_STREAM, stream]), count)


def places(
    env: Env, episodes: int | None = None, *, seed: int = 0, repeats: int = 1
) -> list[EpisodeSpec]:
    """Return the episodes to play: the rows of a finite source in order, or held-out scenes.

    If the source keeps rows, documents or worlds apart for evaluations, only those are played
    (`visenv.data.source.rows_of`, `visenv.data.source.HeldOutSource`).

    Args:
        env: The environment whose source is used.
        episodes: Number of samples; None means every such row of a finite source, or 256 scenes.
        seed: Seed of the held-out scenes and of the sampling of the policy.
        repeats: Number of times that each sample is played, each time with other random numbers of
            the policy.
    """
    base = env.unwrapped
    source = base.source if isinstance(base, VisEnv) else None
    is_apart = isinstance(source, HeldOutSource)
    rows = rows_of(source, held_out=True) if isinstance(source, IndexedSource) else None
    wanted = (256 if rows is None else len(rows)) if episodes is None else episodes
    held_out = held_out_seeds(wanted if rows is None else min(wanted, len(rows)), seed)
    first = HELD_OUT if is_apart and rows is None else 0
    return [
        EpisodeSpec(first + each, group, member, None if rows is None else rows[group])
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
