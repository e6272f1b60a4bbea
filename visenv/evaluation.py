"""Evaluating a policy: every item gives an episode, every episode a row, means with intervals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from visenv.data.source import IndexedSource
from visenv.env import VisEnv
from visenv.rollout import Collector, Env, Place
from visenv.seeding import seeds
from visenv.types import Episode

_HELD_OUT = 0x5EED_0E7A


class Mean(NamedTuple):
    """A mean and the half width of its 95 % interval (normal approximation)."""

    value: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.half_width:.3f}"


class Row(NamedTuple):
    """One line of an evaluation.

    Attributes:
        label: The kind of sample, or ``"all"``.
        episodes: Episodes counted in the means.
        aborted: Episodes that a failed service or an unreadable row ended; they count nowhere else.
        truncated: Episodes without an answer, counted in the means.
        means: Reward, its terms and every metric by name.
    """

    label: str
    episodes: int
    aborted: int
    truncated: int
    means: dict[str, Mean]


def held_out_seeds(count: int, stream: int = 0) -> list[int]:
    """`count` seeds that no training run draws: a stream of their own, the same in every run."""
    return seeds(np.random.SeedSequence([_HELD_OUT, stream]), count)


def places(env: Env, episodes: int | None) -> list[Place]:
    """What to play: rows of a finite source in order, otherwise held-out seeds.

    Args:
        env: The environment, to know its source.
        episodes: How many; None plays every row of a finite source, or 256 scenes.
    """
    base = env.unwrapped
    source = base.source if isinstance(base, VisEnv) else None
    if isinstance(source, IndexedSource):
        count = len(source) if episodes is None else min(episodes, len(source))
        return [Place(seed=index, group=index, index=index) for index in range(count)]
    held_out = held_out_seeds(256 if episodes is None else episodes)
    return [Place(seed, group) for group, seed in enumerate(held_out)]


def evaluate(
    collector: Collector,
    env: Env,
    episodes: int | None = None,
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play the evaluation episodes of `env`'s source with the collector's policy."""
    return collector.episodes(places(env, episodes), on_episode)


def summarise(episodes: Sequence[Episode]) -> list[Row]:
    """A row for all episodes and, when there are several kinds, one for each."""
    by_kind: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        by_kind[episode.kind].append(episode)
    rows = [_row("all", episodes)]
    if len(by_kind) > 1:
        rows += [_row(kind, by_kind[kind]) for kind in sorted(by_kind)]
    return rows


def _row(label: str, episodes: Sequence[Episode]) -> Row:
    counted = [episode for episode in episodes if episode.status != "aborted"]
    values: dict[str, list[float]] = defaultdict(list)
    for episode in counted:
        values["reward"].append(episode.reward)
        for name, value in (*episode.metrics.items(), *episode.terms.items()):
            values[name].append(value)
    return Row(
        label,
        len(counted),
        len(episodes) - len(counted),
        sum(episode.status == "truncated" for episode in counted),
        {name: mean(each) for name, each in values.items()},
    )


def mean(values: Sequence[float]) -> Mean:
    """Mean and 95 % half width ``1.96 s / sqrt(n)``, with the sample standard deviation s."""
    if len(values) < 2:
        return Mean(float(values[0]) if values else math.nan, math.nan)
    deviation = float(np.std(values, ddof=1))
    return Mean(float(np.mean(values)), 1.96 * deviation / math.sqrt(len(values)))


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as JSON objects; what is not finite, which JSON lacks, is None."""
    return [
        {
            **{name: getattr(row, name) for name in ("label", "episodes", "aborted", "truncated")},
            **{name: [_finite(each) for each in mean] for name, mean in row.means.items()},
        }
        for row in rows
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
