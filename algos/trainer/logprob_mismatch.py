"""Measures the difference between the log-probabilities of sampler and trainer.

Sampler and trainer compute with the same weights, possibly in different engines with different
rounding. If the sampler reads other tokens, images or weights than the trainer, the difference is
large.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from visenv.errors import SamplerError

from .distributed import DistributedContext

_FEWEST = 64
"""The minimum number of tokens for `LogprobMismatch.require`, because small means are noisy."""


@dataclass
class LogprobMismatch:
    """Sums differences over tokens that were sampled with the current weights."""

    tokens: float = 0.0
    distance: float = 0.0
    largest: float = 0.0
    ratios: float = 0.0
    squares: float = 0.0

    def add(self, trainer: torch.Tensor, sampler: torch.Tensor, fresh: torch.Tensor) -> None:
        """Compare log-probabilities.

        Args:
            trainer: Those of the trainer, ``[segments, length]``, in nats.
            sampler: Those of the sampler, in the same shape; NaN for unknown values.
            fresh: bool, in the same shape: whether a token was sampled with the current weights.
        """
        compared = fresh & ~sampler.isnan()
        difference = (trainer.detach().double() - sampler.double())[compared]
        if not len(difference):
            return
        ratio = difference.exp()
        self.tokens += len(difference)
        self.distance += float(difference.abs().sum())
        self.largest = max(self.largest, float(difference.abs().max()))
        self.ratios += float(ratio.sum())
        self.squares += float(ratio.square().sum())

    def measures(self, processes: DistributedContext) -> dict[str, float]:
        """Return the metrics over all processes; an empty mapping if no token could be compared.

        Returns:
            ``sampler/distance``, the mean of ``|log p_trainer - log p_sampler|``;
            ``sampler/largest``, their maximum; ``sampler/ratio``, the mean of the weights
            ``w = p_trainer / p_sampler``, whose expected value is 1; ``sampler/effective``, the
            effective sample size with these weights as a share of the tokens,
            ``(Σ w)² / (n Σ w²)``.
        """
        all_of_them = processes.gather(self)
        tokens = sum(each.tokens for each in all_of_them)
        if not tokens:
            return {}
        ratios = sum(each.ratios for each in all_of_them)
        squares = sum(each.squares for each in all_of_them)
        return {
            "sampler/distance": sum(each.distance for each in all_of_them) / tokens,
            "sampler/largest": max(each.largest for each in all_of_them),
            "sampler/ratio": ratios / tokens,
            "sampler/effective": ratios**2 / (tokens * squares),
        }

    def require(self, processes: DistributedContext, limit: float | None) -> None:
        """Check that the sampler uses the weights of the trainer. All processes make this call.

        Args:
            processes: The processes of the run.
            limit: The maximum ``sampler/distance``, in nats; None sets no limit. Fewer than 64
                tokens over all processes are not checked.

        Raises:
            SamplerError: If the distance exceeds the limit.
        """
        if limit is None:
            return
        compared = sum(processes.gather(self.tokens))
        distance = self.measures(processes).get("sampler/distance", 0.0)
        if compared >= _FEWEST and distance > limit:
            raise SamplerError(
                "the sampler and the trainer disagree on the tokens that were sampled with the "
                f"current weights: sampler/distance is {distance:.3g} nats, max_sampler_distance "
                f"{limit:g}. The sampler holds other weights, or reads other tokens or images; "
                'see "When training diverges" in docs/training.md.'
            )
