"""GRPO as an `Algorithm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.algorithm import Algorithm, Batch, Loss
from visenv.errors import ConfigurationError
from visenv.types import Group

from .advantage import Scale, group_relative
from .kl import ESTIMATORS, Estimator
from .loss import Normalisation, aggregate, clipped_loss, clipped_share


@dataclass(frozen=True)
class GRPO(Algorithm):
    """Group relative policy optimisation.

    The defaults are Groundlight's (clip-higher, no reference) with DAPO's token mean.
    """

    clip_low: float = 0.2
    """How far below 1 the probability ratio of a token still counts."""
    clip_high: float = 0.28
    """How far above 1."""
    scale: Scale = "group"
    """Whether the group's standard deviation divides the advantages."""
    normalisation: Normalisation = "token"
    """Whether every token of a step weighs the same, or every sequence."""
    kl_weight: float = 0.0
    """Weight of the divergence from the starting policy; 0 keeps no reference."""
    kl_estimator: Estimator = "k3"
    """How that divergence is estimated."""

    def __post_init__(self) -> None:
        for name, limit in (("clip_low", 1.0), ("clip_high", np.inf), ("kl_weight", np.inf)):
            if not 0 <= getattr(self, name) <= limit:
                given = getattr(self, name)
                raise ConfigurationError(f"{name} must lie between 0 and {limit}, got {given}.")
        choices = {"scale": Scale, "normalisation": Normalisation, "kl_estimator": Estimator}
        for name, allowed in choices.items():
            if getattr(self, name) not in get_args(allowed):
                given = getattr(self, name)
                raise ConfigurationError(f"{name} is one of {get_args(allowed)}, got {given!r}.")
        object.__setattr__(self, "needs_reference", self.kl_weight > 0)

    def advantages(self, groups: Sequence[Group]) -> list[list[NDArray[np.float64]]]:
        """One advantage for each episode (`group_relative`)."""
        return [
            [np.asarray(each) for each in group_relative([e.reward for e in group], self.scale)]
            for group in groups
        ]

    def loss(self, batch: Batch) -> Loss:
        """The clipped loss, plus the weighted divergence where a reference is kept.

        Metrics, means over the step's sampled tokens: ``clip_low`` and ``clip_high`` (share of
        tokens clipped), ``ratio``, ``entropy`` (nats) and ``kl`` (nats).
        """
        mask, zero = batch.mask, batch.logprobs.new_zeros(())
        logprobs = torch.where(mask, batch.logprobs, zero)
        ratio = torch.exp(logprobs - torch.where(mask, batch.old_logprobs, zero))
        advantages = torch.where(mask, batch.advantages, zero)
        values = clipped_loss(ratio, advantages, self.clip_low, self.clip_high)
        low, high = clipped_share(ratio, advantages, self.clip_low, self.clip_high)
        watched = {"clip_low": low, "clip_high": high, "ratio": ratio, "entropy": batch.entropy}
        if self.kl_weight and batch.reference_logprobs is not None:
            reference = torch.where(mask, batch.reference_logprobs, zero)
            watched["kl"] = ESTIMATORS[self.kl_estimator](logprobs, reference)
            values = values + self.kl_weight * watched["kl"]
        totals = (batch.total_tokens, batch.total_segments)
        return Loss(
            aggregate(values, mask, *totals, self.normalisation),
            {
                name: float(torch.where(mask, each.detach(), zero).sum()) / max(totals[0], 1)
                for name, each in watched.items()
            },
        )
