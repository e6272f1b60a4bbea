"""Computes the parts of the loss of a token: probability ratios, KL, corrections and aggregation.

**Corrections.** An engine rounds differently than the trainer, and may hold older weights. Its
tokens are therefore drawn from a different distribution than p_old in the ratio of the loss. The
weight ``p_old / p_sampler`` corrects for this difference, and bounds of the weight limit the
variance.

**Aggregation.** `token_mean` and the other functions that aggregate return the contribution of a
micro-batch. They divide by totals of the whole step on all ranks, so the contributions add up to
the same number for any division into micro-batches. In the formulas, ``o_i`` are the sampled tokens
of an episode. An episode whose context was replaced has several segments, and they share the weight
of the episode. If each segment had the weight of an episode, long episodes would outweigh short
ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch

from visenv.algorithm import Batch

LIMIT = 20.0
"""The bound of log-ratios, ±20 as in verl, so that their exponential is finite."""


class TokenLosses(NamedTuple):
    """Holds the loss of every sampled token.

    Attributes:
        values: float ``[segments, length]``, with gradient, 0 outside the mask.
        watched: Values by name whose means are logged, ``[segments, length]`` or ``[segments, 1]``.
    """

    values: torch.Tensor
    watched: dict[str, torch.Tensor]


def bounded_exp(log_ratio: torch.Tensor) -> torch.Tensor:
    """Return ``exp(log_ratio)``, of any shape; it is constant, without gradient, beyond ±20."""
    return torch.exp(log_ratio.clamp(-LIMIT, LIMIT))


def token_ratio(batch: Batch) -> torch.Tensor:
    """Return ``p / p_old`` of each token, float ``[segments, length]``."""
    return bounded_exp(batch.logprobs - batch.old_logprobs)


def sequence_ratio(batch: Batch) -> torch.Tensor:
    """Return the geometric mean of the ratios of a segment for each token, ``[segments, length]``.

    Each token has the value of the whole segment and its own gradient, so that tokens can have
    different advantages. If all tokens of an episode of one segment have the same advantage, the
    value and the gradient of the mean over its tokens equal those of GSPO.

    Source: GSPO (arXiv:2507.18071), equation 7, in the form of GSPO-token, equation 14.
    """
    lengths = batch.mask.sum(-1, keepdim=True).clamp(min=1)  # [segments, 1]
    mean = (batch.logprobs - batch.old_logprobs).sum(-1, keepdim=True) / lengths  # [segments, 1]
    return bounded_exp(mean.detach() + batch.logprobs - batch.logprobs.detach())


def clipped(
    ratio: torch.Tensor,
    advantages: torch.Tensor,
    low: float,
    high: float,
    dual: float | None = None,
) -> TokenLosses:
    """Return ``-min(ρ A, clip(ρ, 1 - low, 1 + high) A)`` of each token, with ρ at most `dual`.

    The metrics are ``ratio`` and the shares of tokens that have no gradient because of the clip:
    ``clip_low``, ``clip_high`` and, with a `dual`, ``clip_dual``.

    Args:
        ratio: ρ, ``p / p_old`` of the sampled tokens, of any shape.
        advantages: A, of the same shape.
        low: The distance below 1 at which the ratio is clipped.
        high: The distance above 1 at which the ratio is clipped; a value above `low` is DAPO's
            clip-higher.
        dual: The upper bound of the ratio for tokens with a negative advantage, whose ratio PPO
            does not bound from above. It is larger than ``1 + high``, or None for no bound.

    Source: DAPO (arXiv:2503.14476), eq. 10; with ``low = high`` PPO (arXiv:1707.06347), eq. 7;
    `dual`: arXiv:1912.09729, eq. 4.
    """
    within = ratio.clamp(1 - low, 1 + high)
    free = ratio if dual is None else ratio.clamp(max=dual)
    watched = {
        "clip_low": (ratio < 1 - low) & (advantages < 0),
        "clip_high": (ratio > 1 + high) & (advantages > 0),
        "ratio": ratio,
    }
    if dual is not None:
        watched["clip_dual"] = (ratio > dual) & (advantages < 0)
    return TokenLosses(-torch.minimum(free * advantages, within * advantages), watched)


Estimator = Literal["k1", "k2", "k3"]


def k1(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return ``log p - log q``, which is unbiased, of either sign and of high variance.

    Use it as a metric and not as a loss: the expected value of its gradient is 0.
    """
    return logprobs - reference


def k2(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return ``(log p - log q)² / 2``, which is biased and never negative.

    On-policy, its gradient is that of the KL divergence.
    """
    return (logprobs - reference).square() / 2


def k3(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return ``q/p - log(q/p) - 1``, which is unbiased and never negative (used by GRPO)."""
    log_ratio = reference - logprobs
    return torch.expm1(log_ratio) - log_ratio


ESTIMATORS: dict[Estimator, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
}
"""The estimators by name. Arguments: ``log p`` and ``log q`` of tokens sampled from p, in nats.

Source: J. Schulman, "Approximating KL divergence" (2020); GRPO uses k3 (arXiv:2402.03300, eq. 4).
"""


Correction = Literal["none", "token", "sequence", "geometric"]
Bounds = Literal["truncate", "mask"]


def importance(batch: Batch, correction: Correction) -> torch.Tensor:
    """Return ``p_old / p_sampler``, without gradient.

    Args:
        batch: A batch whose values are 0 outside its mask.
        correction: The kind of weight. ``"token"``: the ratio of each token (biased, small
            variance). ``"sequence"``: the product over the tokens of a segment (unbiased; the
            variance grows with the length). ``"geometric"``: the geometric mean over the tokens of
            a segment, whose scale does not depend on the length.

    Returns:
        float ``[segments, length]``, or ``[segments, 1]`` if a segment has one weight.
    """
    difference = (batch.old_logprobs - batch.sampling_logprobs).detach()
    if correction == "token":
        return bounded_exp(difference)
    total = difference.sum(-1, keepdim=True)
    if correction == "sequence":
        return bounded_exp(total)
    return bounded_exp(total / batch.mask.sum(-1, keepdim=True).clamp(min=1))


def bounded(weights: torch.Tensor, bounds: Bounds, low: float, high: float | None) -> torch.Tensor:
    """Return the weights, clipped to the bounds or set to 0 outside the bounds.

    Args:
        weights: The weights, of any shape.
        bounds: ``"truncate"`` (TIS) clips the weights to the bounds; ``"mask"`` (MIS, IcePop) sets
            weights outside the bounds to 0.
        low: The lower bound.
        high: The upper bound, or None.

    Source: TIS: arXiv:2510.18927 and F. Yao et al., "Your efficient RL framework secretly brings
    you off-policy RL training" (2025); masks: IcePop (arXiv:2510.18855).
    """
    if bounds == "truncate":
        return weights.clamp(low, high)
    return torch.where(outside(weights, low, high), 0.0, weights)


def outside(weights: torch.Tensor, low: float, high: float | None) -> torch.Tensor:
    """Return a mask of the weights that are out of bounds: bool, of the same shape."""
    return (weights < low) | (weights > (torch.inf if high is None else high))


def token_mean(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``Σ_i Σ_t v_it / Σ_i |o_i|``, the mean over all tokens of the step (DAPO, eq. 8).

    Args:
        values: float ``[segments, length]``, 0 outside the mask.
        batch: The batch with the mask and the totals.
    """
    return values.sum() / max(batch.total_tokens, 1)


def episode_mean(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``1/G Σ_i 1/|o_i| Σ_t v_it``, the mean over episodes of their means (GRPO, eq. 3)."""
    means = values.sum(-1) / batch.episode_tokens.clamp(min=1)  # [segments]
    return means.sum() / max(batch.total_episodes, 1)


def episode_sum(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return ``1/G Σ_i Σ_t v_it``, the mean over episodes of their sums (REINFORCE)."""
    return values.sum() / max(batch.total_episodes, 1)
