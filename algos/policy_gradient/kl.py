"""Estimators of the divergence of the present policy from a reference, token by token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

Estimator = Literal["k1", "k2", "k3"]


def k1(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return ``log p - log q``: unbiased, of either sign, high variance.

    For watching, not for learning: as a loss its gradient is 0 in expectation.
    """
    return logprobs - reference


def k2(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return ``(log p - log q)² / 2``: biased, never negative; on-policy its gradient is KL's."""
    return (logprobs - reference).square() / 2


def k3(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return ``q/p - log(q/p) - 1``: unbiased, never negative; the estimator of GRPO's paper."""
    log_ratio = reference - logprobs
    return torch.expm1(log_ratio) - log_ratio


ESTIMATORS: dict[Estimator, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
}
"""By name. All take ``log p`` and ``log q`` of tokens sampled from p, of one shape, in nats.

Source: J. Schulman, "Approximating KL divergence" (2020); GRPO uses k3 (arXiv:2402.03300, eq. 4).
"""
