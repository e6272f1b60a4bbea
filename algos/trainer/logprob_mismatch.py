"""Measures how well sampler and trainer agree on the probabilities of sampled tokens.

The two run the same weights, maybe in different engines with different rounding. A sampler that
reads other tokens, images or weights than the trainer shows here first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from visenv.errors import SamplerError

from .distributed import DistributedContext

_FEWEST = 64
"""Tokens below which `LogprobMismatch.require` does not judge: the mean of a few is noise."""


@dataclass
class LogprobMismatch:
    """Sums differences over tokens that were sampled with the present weights."""

    tokens: float = 0.0
    distance: float = 0.0
    largest: float = 0.0
    ratios: float = 0.0
    squares: float = 0.0

    def add(self, trainer: torch.Tensor, sampler: torch.Tensor, fresh: torch.Tensor) -> None:
        """Compare log-probabilities.

        Args:
            trainer: ``[segments, length]``, in nats.
            sampler: The same shape; NaN where none was reported.
            fresh: bool, the same shape: sampled with the present weights.
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
        """Return the measures over all processes; nothing if no token could be compared.

        Returns:
            ``sampler/distance``, the mean of ``|log p_trainer - log p_sampler|``, and
            ``sampler/largest`` of them; ``sampler/ratio``, the mean of ``p_trainer / p_sampler``
            (1 in expectation), and ``sampler/effective``, the effective sample size of weighting
            with it, as a share of the tokens: ``(Σ w)² / (n Σ w²)``.
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
        """Check that the sampler samples with the trainer's weights; all processes do so together.

        Args:
            processes: Those that measured.
            limit: Largest ``sampler/distance``, in nats; None is no limit. Fewer than 64 tokens
                over all processes are not judged.

        Raises:
            SamplerError: If the distance is larger.
        """
        if limit is None:
            return
        compared = sum(processes.gather(self.tokens))
        distance = self.measures(processes).get("sampler/distance", 0.0)
        if compared >= _FEWEST and distance > limit:
            raise SamplerError(
                "the sampler and the trainer disagree on the tokens that were sampled with the "
                f"present weights: sampler/distance is {distance:.3g} nats, max_sampler_distance "
                f"{limit:g}. The sampler holds other weights, or reads other tokens or images; "
                "docs/training.md says where to look."
            )
