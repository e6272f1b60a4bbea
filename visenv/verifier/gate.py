"""Combines terms by the gate: outcome first, then the mean of the selected terms (Argos, eq. 9)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from visenv.errors import ConfigurationError, UnknownNameError

ACCURACY = "accuracy"
DEFAULT_WEIGHTS = {ACCURACY: 1.0, "spatial": 1.0, "temporal": 1.0, "reasoning": 1.0}
"""Weights of the terms. The paper gives no values; its w_S and w_G are one spatial or temporal
weight."""


@dataclass(frozen=True)
class GatedAggregate:
    """Combines the terms of a response: the argument ``combine`` of a `RewardWrapper`.

    The reward is the accuracy if the accuracy is below `threshold`, otherwise the weighted mean of
    the terms. A term that is None is omitted from the mean, with its weight.

    Args:
        threshold: The threshold tau of the paper; the paper does not state its value.
        weights: Weights by the name of the term; 1 for a term that is not named.

    Raises:
        UnknownNameError: If a weight names an unknown term.
        ConfigurationError: If a weight is negative or not finite, that of the accuracy is not
            positive, or the threshold is not in (0, 1].
    """

    threshold: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigurationError(f"threshold must be in (0, 1], got {self.threshold}.")
        for name in self.weights:
            if name not in DEFAULT_WEIGHTS:
                raise UnknownNameError("term", name, DEFAULT_WEIGHTS)
        weights = {**DEFAULT_WEIGHTS, **self.weights}
        if not all(0 <= weight < math.inf for weight in weights.values()) or not weights[ACCURACY]:
            raise ConfigurationError(
                f"Weights must be finite and not negative, and that of {ACCURACY} above 0, got "
                f"{self.weights}."
            )
        object.__setattr__(self, "weights", weights)

    def __call__(self, terms: Mapping[str, float | None]) -> float:
        """Return the reward, between 0 and 1 if all terms are between 0 and 1."""
        accuracy = terms[ACCURACY] or 0.0
        if accuracy < self.threshold:
            return accuracy
        applied = [
            (self.weights[name], value) for name, value in terms.items() if value is not None
        ]
        return sum(weight * value for weight, value in applied) / sum(
            weight for weight, _ in applied
        )
