"""Tests loss aggregation against hand-worked values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from visenv.algos.policy_gradient.token_loss import episode_mean, episode_sum, token_mean

VALUES = torch.tensor([[1.0, 2.0], [3.0, 0.0]])


def test_aggregations_by_hand(hand_batch: Any) -> None:
    # tokens (1 + 2 + 3) / 3 = 2; episode means (3/2 + 3/1) / 2 = 2.25; sums (3 + 3) / 2 = 3
    assert float(token_mean(VALUES, hand_batch)) == pytest.approx(2.0)
    assert float(episode_mean(VALUES, hand_batch)) == pytest.approx(2.25)
    assert float(episode_sum(VALUES, hand_batch)) == pytest.approx(3.0)


def test_segments_of_an_episode_share_its_weight(hand_batch: Any) -> None:
    # both segments belong to one of two episodes; the other episode, of 7 tokens, is elsewhere
    batch = replace(
        hand_batch, episode_tokens=torch.tensor([3, 3]), total_tokens=10, total_episodes=2
    )
    # tokens (1 + 2 + 3) / 10; means ((1 + 2 + 3) / 3) / 2 = 1; sums (1 + 2 + 3) / 2 = 3
    assert float(token_mean(VALUES, batch)) == pytest.approx(0.6)
    assert float(episode_mean(VALUES, batch)) == pytest.approx(1.0)
    assert float(episode_sum(VALUES, batch)) == pytest.approx(3.0)


@pytest.mark.parametrize("aggregate", [token_mean, episode_mean, episode_sum])
def test_batch_of_padding_alone_adds_nothing(hand_batch: Any, aggregate: Any) -> None:
    empty = replace(hand_batch, mask=torch.zeros(2, 2, dtype=torch.bool))
    assert float(aggregate(torch.zeros(2, 2), empty)) == 0.0
    none_at_all = replace(empty, total_tokens=0, total_episodes=0)
    assert float(aggregate(torch.zeros(2, 2), none_at_all)) == 0.0
