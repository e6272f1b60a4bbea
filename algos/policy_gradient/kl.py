"""Estimates the KL divergence of the current policy from a reference for each token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

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
