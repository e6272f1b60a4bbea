"""Determines the order in which the rows of finite data sets are read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from visenv.data.source import is_indexed, rows_of
from visenv.env import VisEnv
from visenv.rollout import Mixture

from .base import random_stream

_ROWS = 7
"""Key of the stream that orders the rows of a finite data set."""


class EnvRows(NamedTuple):
    """Describes the data set of an environment for the order of samples.

    Attributes:
        rows: The rows of the data set for training; None if the data are procedural.
        metric: The metric whose mean is the pass rate.
    """

    rows: Sequence[int] | None
    metric: str


class RowOrder:
    """Orders the rows of each finite data set of a mixture in epochs.

    An epoch contains each row once, in an order that depends on the seed and the epoch.

    Args:
        mixture: The environments.
        seed: The seed of the orders.
    """

    def __init__(self, mixture: Mixture, seed: int) -> None:
        self._mixture = mixture
        self._seed = seed

    @cached_property
    def tasks(self) -> dict[str, EnvRows]:
        """Return the data sets and headline metrics of the environments, by name."""
        return {name: _task(make_env()) for name, make_env in self._mixture.make_envs.items()}

    def row(self, env: str, place: int) -> int | None:
        """Return the row at a position of the order; None if the data are procedural.

        Args:
            env: The name of the environment in the mixture.
            place: The number of rows of the environment before this one, over all epochs.
        """
        rows = self.tasks[env].rows
        if rows is None:
            return None
        count = len(rows)
        return rows[int(self._order(env, count, place // count)[place % count])]

    @lru_cache(maxsize=64)  # noqa: B019 - an order lives as long as its run
    def _order(self, env: str, rows: int, epoch: int) -> Any:
        place = list(self._mixture.make_envs).index(env)
        stream = random_stream(self._seed, _ROWS, place, epoch)
        return np.random.default_rng(stream).permutation(rows)


def _task(env: Any) -> EnvRows:
    try:
        base = env.unwrapped
        if not isinstance(base, VisEnv):
            return EnvRows(None, "reward")
        rows = rows_of(base.source, held_out=False) if is_indexed(base.source) else None
        return EnvRows(rows, base.headline_metrics[0])
    finally:
        env.close()
