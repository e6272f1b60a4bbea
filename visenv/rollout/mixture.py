"""Defines a mixture of environments; the seed of a sample determines which one is played."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from visenv.errors import ConfigurationError
from visenv.rollout.adapter import MakeEnv

_CHOICE = 0x4D1C
"""Key of the random numbers that choose an environment for a seed."""

_LEAST = 0.05
"""Lower bound of the factor ``p (1 - p)`` of a weight; the largest possible factor is 0.25."""


@dataclass(frozen=True)
class Mixture:
    """Holds several environments by name, with the relative frequency of each.

    The environment of a sample is a function of the sample's seed and, with `by_pass_rate`, of the
    pass rates. It is the same in every process, in a resumed run, and for all members of a group.

    Attributes:
        make_envs: A function for each name that makes one environment.
        weights: The relative frequency of each environment, a positive number.
        by_pass_rate: Whether a trainer multiplies the weight of an environment by
            ``max(p (1 - p), 0.05)``, where p is its pass rate: a running mean of its first headline
            metric (`VisEnv.headline_metrics`). Environments that the policy always or never solves
            are then played less.

    Raises:
        ConfigurationError: If there is no environment, or if the weights are not positive numbers
            for the same names.
    """

    make_envs: Mapping[str, MakeEnv]
    weights: Mapping[str, float]
    by_pass_rate: bool = False

    def __post_init__(self) -> None:
        if not self.make_envs or set(self.make_envs) != set(self.weights):
            raise ConfigurationError(
                f"A mixture needs a weight for each environment, got {sorted(self.weights)} for "
                f"{sorted(self.make_envs)}."
            )
        for name, weight in self.weights.items():
            if not 0 < weight < math.inf:
                raise ConfigurationError(f"The weight of {name} must be above 0, got {weight}.")

    def choose(self, seed: int, pass_rates: Mapping[str, float] | None = None) -> str:
        """Return the name of the environment that is played for a seed.

        Args:
            seed: The seed of a sample.
            pass_rates: The pass rate of each environment, 0 to 1; None uses the weights unchanged.
        """
        names = list(self.make_envs)
        if len(names) == 1:
            return names[0]
        shares = np.array([self.weights[name] for name in names])
        if pass_rates is not None:
            rates = np.array([pass_rates[name] for name in names])
            shares = shares * np.maximum(rates * (1 - rates), _LEAST)
        drawn = np.random.default_rng([_CHOICE, seed]).random() * shares.sum()
        return names[min(int(np.searchsorted(shares.cumsum(), drawn, "right")), len(names) - 1)]
