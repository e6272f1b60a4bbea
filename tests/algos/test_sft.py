"""Tests the SFT loss against hand-worked values."""

from __future__ import annotations

import pytest
import torch

from visenv.algorithm import Batch
from visenv.algos.sft import SFT


def test_loss_is_the_mean_over_the_tokens_of_the_step() -> None:
    nan = float("nan")
    batch = Batch(
        logprobs=torch.tensor([[-1.0, nan], [-2.0, -3.0]], requires_grad=True),
        old_logprobs=torch.full((2, 2), nan),
        sampling_logprobs=torch.full((2, 2), nan),
        reference_logprobs=None,
        entropy=torch.tensor([[0.3, nan], [0.4, 0.5]]),
        advantages=torch.ones(2, 2),
        mask=torch.tensor([[True, False], [True, True]]),
        episode_tokens=torch.tensor([1, 2]),
        total_tokens=6,  # three more in another micro-batch
        total_episodes=4,
    )
    loss = SFT().loss(batch)
    assert float(loss.value.detach()) == pytest.approx(1.0)  # (1 + 2 + 3) / 6
    assert loss.metrics == pytest.approx({"entropy": 0.2})  # (.3 + .4 + .5) / 6
    loss.value.backward()
    assert batch.logprobs.grad is not None
    assert batch.logprobs.grad.tolist() == [
        [pytest.approx(-1 / 6), 0.0],
        [pytest.approx(-1 / 6)] * 2,
    ]
