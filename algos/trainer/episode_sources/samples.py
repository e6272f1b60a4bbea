"""Determines the samples of a run, and the order of the rows of finite data sets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from visenv.data.source import is_indexed, rows_of
from visenv.env import VisEnv
from visenv.errors import RunError
from visenv.rollout import Mixture
from visenv.seeding import random_stream, seeds
from visenv.types import Episode, Group

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


SCENES = 1
"""Key of the random stream of the seeds of samples."""

_REPLACING_ROWS = 8
"""Key of the random stream of the rows of groups that replace others."""

DECAY = 0.9
"""Weight of the previous pass rate in the running mean of a step."""

UNKNOWN_RATE = 0.5
"""The pass rate of an environment that has not been played yet."""


class SampleChoice(NamedTuple):
    """Describes the sample of one group.

    Attributes:
        seed: The seed of the group.
        env: The name of the environment in the mixture.
        row: The row of a finite data set; None if the sample is generated from the seed.
    """

    seed: int
    env: str
    row: int | None


class SampleOrder:
    """Selects the samples of a run, as a pure function of the seed and of earlier pass rates.

    The environment of a group is drawn by the weights of the mixture, or by pass rates. Step n uses
    the pass rates up to step ``n - ahead - 1``, so that the choice is the same for steps that are
    played in advance. A finite data set is read in epochs; an epoch contains each row once, in a
    random order. Groups that replace others draw their rows at random.

    Args:
        mixture: The environments.
        groups: The number of groups in a step.
        seed: The seed of the run.
        ahead: The maximum number of steps that are played in advance.

    Attributes:
        identity: The settings that must equal those of a checkpoint, JSON-like.
    """

    def __init__(self, mixture: Mixture, groups: int, seed: int, ahead: int = 0) -> None:
        self.identity = {"weights": dict(mixture.weights), "by_pass_rate": mixture.by_pass_rate}
        self._mixture = mixture
        self._groups = groups
        self._seed = seed
        self._rows = RowOrder(mixture, seed)
        self._ahead = ahead
        self._rows_before: dict[int, Counter[str]] = {0: Counter()}
        self._rates: dict[int, Mapping[str, float]] = {
            0: dict.fromkeys(mixture.make_envs, UNKNOWN_RATE)
        }
        self._steps: dict[int, list[SampleChoice]] = {}
        self._lock = RLock()  # another thread selects the samples of steps played in advance

    def choose(self, step: int, number: int) -> SampleChoice:
        """Return the sample of a group.

        Args:
            step: The step, counted from 0.
            number: The number of the group in the step; groups from
                number `groups` on replace others.
        """
        with self._lock:
            return self._choose(step, number)

    def env_of(self, step: int, number: int) -> str:
        """Return the name of the environment of a group; ``""`` if the mixture has only one."""
        return self.choose(step, number).env if len(self._mixture.make_envs) > 1 else ""

    def _choose(self, step: int, number: int) -> SampleChoice:
        if number < self._groups:
            return self._step(step)[number]
        seed = seeds(random_stream(self._seed, SCENES, step), number + 1)[number]
        env = self._mixture.choose(seed, self._rates_for(step))
        rows = self._rows.tasks[env].rows
        stream = random_stream(self._seed, _REPLACING_ROWS, step, number)
        rng = np.random.default_rng(stream)
        index = None if rows is None else rows[int(rng.integers(len(rows)))]
        return SampleChoice(seed, env, index)

    def observe(self, step: int, groups: Sequence[Group]) -> None:
        """Update the pass rates with the episodes of all processes in a step (from 0)."""
        values: dict[str, list[float]] = defaultdict(list)
        for episode in (episode for group in groups for episode in group):
            env = self.choose(step, episode.group).env
            value = _passed(episode, self._rows.tasks[env].metric)
            if value is not None:
                values[env].append(value)
        with self._lock:
            self._rates[step + 1] = {
                env: DECAY * rate + (1 - DECAY) * float(np.mean(values[env]))
                if values[env]
                else rate
                for env, rate in self._rates[step].items()
            }
            self._forget(step)

    def state(self, step: int) -> dict[str, Any]:
        """Return the state for a checkpoint after `step` steps, JSON-like."""
        known = range(max(0, step - self._ahead), step + 1)
        with self._lock:
            return {
                "rows": dict(self._before(step)),
                "counts": self._counts(),
                "rates": {str(number): dict(self._rates[number]) for number in known},
            }

    def restore(self, step: int, state: Mapping[str, Any]) -> None:
        """Restore the state after `step` steps, which `state` returned.

        Raises:
            LookupError: If the state has no pass rate of an environment, or none of this step.
            RunError: If an environment has another number of rows than before.
        """
        for env, count in self._counts().items():
            if state["counts"][env] != count:
                raise RunError(
                    f"The data of {env!r} had {state['counts'][env]} rows when the run was stopped,"
                    f" and have {count}. Restore the data, or start a new run."
                )
        rates = {int(number): dict(each) for number, each in state["rates"].items()}
        for env in self._mixture.make_envs:
            float(rates[step][env])
        self._steps.clear()
        self._rows_before = {step: Counter(state["rows"])}
        self._rates = {**rates}

    def _counts(self) -> dict[str, int | None]:
        """Return the number of rows of each environment; None if its data are procedural."""
        tasks = self._rows.tasks
        return {env: None if told.rows is None else len(told.rows) for env, told in tasks.items()}

    # ------------------------------------------------------------------ one step

    def _step(self, step: int) -> list[SampleChoice]:
        """Return the samples of the groups of a step, without those that replace others."""
        if step not in self._steps:
            taken = Counter(self._before(step))
            rates = self._rates_for(step)
            chosen: list[SampleChoice] = []
            for seed in seeds(random_stream(self._seed, SCENES, step), self._groups):
                env = self._mixture.choose(seed, rates)
                chosen.append(SampleChoice(seed, env, self._rows.row(env, taken[env])))
                taken[env] += 1
            self._steps[step] = chosen
            self._rows_before[step + 1] = taken
        return self._steps[step]

    def _before(self, step: int) -> Counter[str]:
        """Return the number of groups of each environment before the step."""
        for earlier in range(max(known for known in self._rows_before if known <= step), step):
            self._step(earlier)
        return self._rows_before[step]

    def _rates_for(self, step: int) -> Mapping[str, float] | None:
        return self._rates[max(0, step - self._ahead)] if self._mixture.by_pass_rate else None

    def _forget(self, step: int) -> None:
        """Delete the data that later steps do not need."""
        for kept in (self._steps, self._rows_before, self._rates):
            for old in [number for number in kept if number < step - self._ahead]:
                del kept[old]


def _passed(episode: Episode, metric: str) -> float | None:
    """Return the metric of an episode, 0 to 1; None if it was aborted or lacks the metric."""
    if episode.status == "aborted":
        return None
    value = episode.reward if metric == "reward" else episode.metrics.get(metric)
    return None if value is None else min(1.0, max(0.0, value))
