"""Defines the base classes of the algorithms in this folder, and checks their options."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from typing_extensions import override

from visenv.algorithm import Algorithm, Batch, Loss
from visenv.errors import ConfigurationError
from visenv.types import Episode, Group

from .advantage import Credit, Floats, Scale, by_episode, by_state, by_turn, punished, was_cut_off
from .token_loss import (
    ESTIMATORS,
    Bounds,
    Correction,
    Estimator,
    TokenLosses,
    bounded,
    clipped,
    importance,
    outside,
    token_ratio,
)

Baseline = Literal["none", "group"]

CHOICES = {
    "baseline": Baseline,
    "correction": Correction,
    "correction_bounds": Bounds,
    "credit": Credit,
    "kl_estimator": Estimator,
    "scale": Scale,
}
"""The type of each option with named values, a `Literal`."""
RANGES = {
    "clip_dual": (1.0, math.inf),
    "clip_high": (0.0, math.inf),
    "clip_low": (0.0, 1.0),
    "correction_high": (0.0, math.inf),
    "correction_low": (0.0, math.inf),
    "discount": (0.0, 1.0),
    "kl_coef": (0.0, math.inf),
    "max_ratio": (1.0, math.inf),
    "max_tokens": (1, math.inf),
    "min_ratio": (0.0, 1.0),
    "overlong_buffer": (1, math.inf),
    "overlong_limit": (1, math.inf),
    "overlong_penalty": (0.0, math.inf),
    "state_weight": (0.0, math.inf),
}
"""The lowest and the highest value of each number."""
OPTIONAL = ("clip_dual", "correction_high", "overlong_limit")
"""Numbers that may be None."""
ORDERED = (("correction_low", "correction_high"), ("overlong_buffer", "overlong_limit"))
"""Pairs of options of which the second must be at least the first."""


def check(algorithm: Any) -> None:
    """Check every option of the algorithm that the tables contain.

    Raises:
        ConfigurationError: If an option has an invalid value. The message contains the option, the
            allowed values and the value.
    """
    given = {each.name: getattr(algorithm, each.name) for each in fields(algorithm)}
    for name, value in given.items():
        if name in CHOICES and value not in get_args(CHOICES[name]):
            allowed = get_args(CHOICES[name])
            raise ConfigurationError(f"{name} is one of {allowed}, got {value!r}.")
        if name in RANGES and not (value is None and name in OPTIONAL):
            _check_range(name, value)
    for small, large in ORDERED:
        _check_order(small, given[small], large, given[large])
    if "clip_dual" in given:
        _check_order("1 + clip_high", 1 + given["clip_high"], "clip_dual", given["clip_dual"])


def _check_range(name: str, value: Any) -> None:
    low, high = RANGES[name]
    number = isinstance(value, int | float) and math.isfinite(value)
    if not (number and low <= value <= high):
        raise ConfigurationError(f"{name} must lie between {low} and {high}, got {value!r}.")


def _check_order(small: str, value: float, large: str, limit: float | None) -> None:
    if limit is not None and value > limit:
        raise ConfigurationError(f"{large} must be at least {small}, got {limit} and {value}.")


@dataclass(frozen=True, kw_only=True)
class PolicyGradient(Algorithm):
    """Computes the loss ``aggregate(token_losses · correction + kl_coef · divergence)``.

    An algorithm defines the losses of tokens, their aggregation and the advantages. The options of
    this class are the same for all algorithms.
    """

    kl_coef: float = 0.0
    """Weight of the KL divergence from the reference policy in the loss; with 0 there is no
    reference model."""
    kl_estimator: Estimator = "k3"
    """Estimator of the KL divergence."""
    kl_ratio: bool = False
    """Whether the estimate is multiplied by the probability ratio of the token. k1 and k3 then have
    the gradient of the divergence, also off-policy (DeepSeek-V3.2, arXiv:2512.02556)."""
    correction: Correction = "none"
    """Importance weight ``p_old / p_sampler`` by which the loss is multiplied: none, that of each
    token, of the whole sequence, or its geometric mean. It has an effect only if the trainer
    computes the old log-probabilities."""
    correction_bounds: Bounds = "truncate"
    """Whether weights out of bounds are clipped to the bound, or their tokens are masked."""
    correction_low: float = 0.0
    """Lower bound of the weights."""
    correction_high: float | None = 3.0
    """Upper bound of the weights; None sets no bound."""
    overlong_limit: int | None = None
    """Number of sampled tokens from which an episode gets the full `overlong_penalty`; None turns
    the penalty off."""
    overlong_buffer: int = 64
    """Number of tokens below the limit over which the penalty increases linearly from 0."""
    overlong_penalty: float = 1.0
    """Maximum penalty, in units of reward."""
    mask_truncated: bool = False
    """Whether an episode that a limit ended gets an advantage of 0. It still counts in its
    group."""

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "needs_reference", self.kl_coef > 0)

    @abstractmethod
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the advantage of every episode, in the form of `Algorithm.advantages`."""

    @abstractmethod
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the loss of every token; all values of `batch` are 0 outside its mask."""

    @abstractmethod
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the contribution of the batch to the loss of the step, from its token losses."""

    @override
    def advantages(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Punish overlong episodes, call `estimate`, then mask truncated episodes."""
        estimates = self.estimate([[self._shaped(each) for each in group] for group in groups])
        return [
            [self._masked(*each) for each in zip(group, given, strict=True)]
            for group, given in zip(groups, estimates, strict=True)
        ]

    @override
    def loss(self, batch: Batch) -> Loss:
        """Return the corrected loss, with the weighted KL divergence if a reference is kept.

        The metrics are means over the sampled tokens of the step:

        - ``entropy`` and ``kl``, in nats;
        - ``mismatch``: ``|log p_old - log p_sampler|``, in nats;
        - with a correction, ``importance`` and ``importance_square``: the weight before it is
          bounded, and its square. The effective share of the sample is
          ``importance² / importance_square``;
        - with a correction, ``importance_outside``: the share of weights out of bounds;
        - the metrics of `token_losses` (`TokenLosses.watched`).
        """
        batch = on_mask(batch)
        values, watched = self.token_losses(batch)
        watched = {
            **watched,
            "entropy": batch.entropy,
            "mismatch": (batch.old_logprobs - batch.sampling_logprobs).abs(),
        }
        if self.correction != "none":
            weights = importance(batch, self.correction)
            limits = (self.correction_low, self.correction_high)
            values = values * bounded(weights, self.correction_bounds, *limits)
            watched["importance"] = weights
            watched["importance_square"] = weights.square()
            watched["importance_outside"] = outside(weights, *limits)
        if self.needs_reference:
            watched["kl"] = self._divergence(batch)
            values = values + self.kl_coef * watched["kl"]
        return Loss(self.aggregate(values, batch), _means(watched, batch))

    def _divergence(self, batch: Batch) -> torch.Tensor:
        if batch.reference_logprobs is None:
            raise ConfigurationError(
                f"kl_coef={self.kl_coef} needs the log-probabilities of a reference, and the batch "
                "has no reference_logprobs: set kl_coef=0, or keep a reference."
            )
        divergence = ESTIMATORS[self.kl_estimator](batch.logprobs, batch.reference_logprobs)
        return divergence * token_ratio(batch) if self.kl_ratio else divergence

    def _shaped(self, episode: Episode) -> Episode:
        if self.overlong_limit is None:
            return episode
        return punished(episode, self.overlong_limit, self.overlong_buffer, self.overlong_penalty)

    def _masked(self, episode: Episode, advantage: Floats) -> Floats:
        masked = self.mask_truncated and was_cut_off(episode)
        return np.zeros_like(advantage) if masked else advantage


@dataclass(frozen=True, kw_only=True)
class Clipped(PolicyGradient):
    """Adds a clipped probability ratio."""

    clip_low: float = 0.2
    """Distance below 1 at which the ratio is clipped."""
    clip_high: float = 0.2
    """Distance above 1 at which the ratio is clipped."""
    clip_dual: float | None = None
    """Upper bound of the ratio for tokens with a negative advantage; None sets no bound."""

    def clipped(self, ratio: torch.Tensor, batch: Batch) -> TokenLosses:
        """Return the clipped losses (`ratio.clipped`) with the advantages of the batch."""
        return clipped(ratio, batch.advantages, self.clip_low, self.clip_high, self.clip_dual)


@dataclass(frozen=True, kw_only=True)
class GroupRelative(PolicyGradient):
    """Computes advantages relative to the episodes of the same sample."""

    scale: Scale = "group"
    """Standard deviation by which the advantages are divided."""
    credit: Credit = "episode"
    """Values that are compared: the rewards of episodes, the returns to go of turns, or both, where
    turns are compared in the same state (`credit.by_state`)."""
    discount: float = 1.0
    """Discount of the return of the next turn."""
    state_weight: float = 1.0
    """Weight of the advantage of a turn in its state, relative to the advantage of the episode."""

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the advantages of `credit`."""
        if self.credit == "episode":
            return by_episode(groups, self.scale)
        if self.credit == "turn":
            return by_turn(groups, self.scale, self.discount)
        return by_state(groups, self.scale, self.discount, self.state_weight)


def on_mask(batch: Batch) -> Batch:
    """Return the batch with all values set to 0 where its mask is False."""

    def kept(values: torch.Tensor) -> torch.Tensor:
        return torch.where(batch.mask, values, values.new_zeros(()))

    reference = batch.reference_logprobs
    return replace(
        batch,
        logprobs=kept(batch.logprobs),
        old_logprobs=kept(batch.old_logprobs),
        sampling_logprobs=kept(batch.sampling_logprobs),
        reference_logprobs=None if reference is None else kept(reference),
        entropy=kept(batch.entropy),
        advantages=kept(batch.advantages),
    )


def _means(watched: Mapping[str, torch.Tensor], batch: Batch) -> dict[str, float]:
    """Return the contributions of the batch to the means over the sampled tokens of the step."""
    zero, tokens = batch.logprobs.new_zeros(()), max(batch.total_tokens, 1)
    return {
        name: float(torch.where(batch.mask, each.detach(), zero).sum()) / tokens
        for name, each in watched.items()
    }
