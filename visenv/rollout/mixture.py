"""Several environments that are played together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from visenv.errors import ConfigurationError
from visenv.rollout.adapter import MakeEnv

_CHOICE = 0x4D1C
"""Key of the stream that chooses the environment of a seed."""

_LEAST = 0.05
"""The least factor of a share, a fifth of the largest, 0.25."""


@dataclass(frozen=True)
class Mixture:
    """Environments by name, each with its share of the samples.

    The environment of a sample is a function of the sample's seed, and of pass rates if they count:
    it is the same in every process, in a resumed run and for all members of a group.

    Attributes:
        make_envs: Makes one environment, for each name.
        weights: The shares, relative to one another; positive.
        by_pass_rate: Whether a trainer multiplies the share of an environment by ``p (1 - p)``, and
            at least by 0.05, where p is its pass rate: environments that the policy always or never
            solves are played less.

    Raises:
        ConfigurationError: If there is no environment, or the weights are not positive numbers for
            the same names.
    """

    make_envs: Mapping[str, MakeEnv]
    weights: Mapping[str, float]
    by_pass_rate: bool = False

    def __post_init__(self) -> None:
        if not self.make_envs or set(self.make_envs) != set(self.weights):
            raise ConfigurationError(
                f"A mixture has a weight for each environment, got {sorted(self.weights)} for "
                f"{sorted(self.make_envs)}."
            )
        for name, weight in self.weights.items():
            if not 0 < weight < math.inf:
                raise ConfigurationError(f"The weight of {name} must be above 0, got {weight}.")

    def choose(self, seed: int, pass_rates: Mapping[str, float] | None = None) -> str:
        """Return the name of the environment that a seed plays.

        Args:
            seed: The seed of a sample.
            pass_rates: The pass rate of each environment, 0 to 1; None leaves the shares alone.
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
