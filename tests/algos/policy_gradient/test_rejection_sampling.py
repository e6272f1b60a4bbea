"""Tests rejection sampling: the best members of each group are kept as demonstrations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from visenv.algos.policy_gradient import RejectionSampling
from visenv.registration import load
from visenv.types import Episode, Group, Turn

pytestmark = pytest.mark.component("torch")


def group(*rewards: float) -> Group:
    def episode(member: int, reward: float) -> Episode:
        turns = (Turn((), "", reward, (), "stop"),)
        return Episode("e-v0", "s", "", 0, 0, member, turns, "terminated")

    return [episode(member, reward) for member, reward in enumerate(rewards)]


def weights(*groups: Group) -> list[list[float]]:
    return [[float(each) for each in one] for one in RejectionSampling().advantages(groups)]


def test_best_of_each_group_are_kept_with_a_mean_weight_of_one() -> None:
    # 3 of 8 are kept, so each has weight 8/3.
    found = weights(group(0.0, 1.0, 0.5, 1.0), group(2.0, 0.0, 0.0, 0.0))
    third = 8 / 3
    assert found == [[0, third, 0, third], [third, 0, 0, 0]]
    assert np.mean(found) == pytest.approx(1)


def test_group_whose_rewards_are_all_equal_is_left_out() -> None:
    assert weights(group(1.0, 1.0), group(0.0, 1.0)) == [[0, 0], [0, 4]]
    assert weights(group(1.0, 1.0)) == [[0, 0]]


def test_loss_is_the_weighted_negative_log_likelihood(hand_batch: Any) -> None:
    # log p is -1 for all three tokens; the weights 1, 1 | -1 become 2, 2 | 0: (2 + 2 + 0) / 3
    batch = replace(
        hand_batch,
        logprobs=torch.where(hand_batch.mask, -1.0, 0.0),
        advantages=torch.where(hand_batch.advantages > 0, 2.0, 0.0),
    )
    loss = RejectionSampling().loss(batch)
    assert float(loss.value) == pytest.approx(4 / 3)


def test_recipes_know_it_by_name() -> None:
    assert load("algorithm", "rejection_sampling") is RejectionSampling
