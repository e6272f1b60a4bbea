"""Holds what all algorithms of this folder share; a page of each then reads like its equation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from typing_extensions import override

from visenv.algorithm import Algorithm, Batch, Loss
from visenv.errors import ConfigurationError
from visenv.types import Episode, Group

from .advantage import Floats, Scale
from .correction import Bounds, Correction, bounded, importance, outside
from .credit import Credit, by_episode, by_state, by_turn
from .kl import ESTIMATORS, Estimator
from .options import check
from .overlong import punished, was_cut_off
from .ratio import TokenLosses, clipped, token_ratio


@dataclass(frozen=True, kw_only=True)
class PolicyGradient(Algorithm):
    """Computes ``aggregate(token_losses · correction + kl_coef · divergence)``.

    An algorithm says what a token costs, how tokens are aggregated, and what the advantages are;
    the options here are the same for all of them.
    """

    kl_coef: float = 0.0
    """Weight of the divergence from the reference policy in the loss; 0 keeps no reference."""
    kl_estimator: Estimator = "k3"
    """How that divergence is estimated."""
    kl_ratio: bool = False
    """Whether the token's probability ratio multiplies it. With it, k1 and k3 have the gradient of
    the divergence, also off-policy (DeepSeek-V3.2, arXiv:2512.02556)."""
    correction: Correction = "none"
    """Whether ``p_old / p_sampler`` weights the loss, and of what: each token, the whole sequence,
    or its geometric mean. It matters where the trainer computes old log-probabilities itself."""
    correction_bounds: Bounds = "truncate"
    """Whether weights out of bounds are brought to the bound, or their tokens are masked."""
    correction_low: float = 0.0
    """Least such weight."""
    correction_high: float | None = 3.0
    """Greatest such weight, or None."""
    overlong_limit: int | None = None
    """Sampled tokens at which an episode is punished by `overlong_penalty`; None punishes none."""
    overlong_buffer: int = 64
    """How many tokens before that the punishment sets in, growing in a line."""
    overlong_penalty: float = 1.0
    """The greatest punishment, in units of reward."""
    mask_truncated: bool = False
    """Whether an episode that a limit ended has an advantage of 0. It still counts in its group."""

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "needs_reference", self.kl_coef > 0)

    @abstractmethod
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the advantage of every episode, as `Algorithm.advantages` gives it."""

    @abstractmethod
    def token_losses(self, batch: Batch) -> TokenLosses:
        """Return the loss of every token; all of `batch` is 0 off its mask."""

    @abstractmethod
    def aggregate(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return the batch's share of the step's loss, from the losses of its tokens."""

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

        Metrics, means over the step's sampled tokens: ``entropy`` (nats); ``mismatch``, of
        ``|log p_old - log p_sampler|`` (nats); ``kl`` (nats); where there is a correction,
        ``importance`` and ``importance_square`` (the weight before it is bounded, and its square:
        the effective share of the sample is ``importance² / importance_square``) and
        ``importance_outside`` (share out of bounds); and what `token_losses` watches.
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
                f"kl_coef is {self.kl_coef}, but the batch has no reference_logprobs."
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
    """Adds a probability ratio that counts only near 1."""

    clip_low: float = 0.2
    """How far below 1 the ratio still counts."""
    clip_high: float = 0.2
    """How far above 1."""
    clip_dual: float | None = None
    """The ratio at which a token of negative advantage stops counting; None never stops it."""

    def clipped(self, ratio: torch.Tensor, batch: Batch) -> TokenLosses:
        """Return `ratio.clipped` with the batch's advantages."""
        return clipped(ratio, batch.advantages, self.clip_low, self.clip_high, self.clip_dual)


@dataclass(frozen=True, kw_only=True)
class GroupRelative(PolicyGradient):
    """Computes advantages relative to the episodes of the same sample."""

    scale: Scale = "group"
    """Whose standard deviation divides the advantages."""
    credit: Credit = "episode"
    """What is compared: whole rewards of episodes, returns to go of turns, or both, the latter
    among turns in the same state (`credit.by_state`)."""
    discount: float = 1.0
    """What a turn's return counts of the return of the next turn."""
    state_weight: float = 1.0
    """What the comparison in the same state adds to the comparison of episodes."""

    @override
    def estimate(self, groups: Sequence[Group]) -> list[list[Floats]]:
        """Return the advantages of `credit`."""
        if self.credit == "episode":
            return by_episode(groups, self.scale)
        if self.credit == "turn":
            return by_turn(groups, self.scale, self.discount)
        return by_state(groups, self.scale, self.discount, self.state_weight)


def on_mask(batch: Batch) -> Batch:
    """Return the batch with 0 where its mask is False."""

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
    """Return the batch's shares of the means over the sampled tokens of the step."""
    zero, tokens = batch.logprobs.new_zeros(()), max(batch.total_tokens, 1)
    return {
        name: float(torch.where(batch.mask, each.detach(), zero).sum()) / tokens
        for name, each in watched.items()
    }
