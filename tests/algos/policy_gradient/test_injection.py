"""Tests `GroundTruthInjectedGRPO`: one seeded member of each group gets the ground-truth reward."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from visenv.algos.policy_gradient import GRPO
from visenv.algos.policy_gradient.injection import GroundTruthInjectedGRPO
from visenv.types import Episode, Message, Turn


def episode(member: int, *rewards: float, seed: int = 5) -> Episode:
    turns = tuple(Turn((Message("user", ("?",)),), "a", reward, (), "stop") for reward in rewards)
    return Episode("e", "s", "", seed, 0, member, turns, "terminated")


GROUP = [episode(member, 0.0, 0.5 * member) for member in range(4)]


def chosen(algorithm: GroundTruthInjectedGRPO, group: list[Episode]) -> int:
    """Return the member whose reward was replaced, which is the only one above the others."""
    (advantages,) = algorithm.advantages([group])
    return int(np.argmax([float(each) for each in advantages]))


def test_injected_member_has_the_reward_of_the_ground_truth() -> None:
    algorithm = GroundTruthInjectedGRPO(injected_reward=4.0)
    place = chosen(algorithm, GROUP)
    rewards = [0.0, 0.5, 1.0, 1.5]
    rewards[place] = 4.0
    wanted = GRPO().advantages([[episode(k, 0.0, r) for k, r in enumerate(rewards)]])
    np.testing.assert_allclose(algorithm.advantages([GROUP]), wanted)


def test_rewards_of_its_earlier_turns_count_towards_it() -> None:
    algorithm = GroundTruthInjectedGRPO(injected_reward=2.0, credit="turn", scale="none")
    (advantages,) = algorithm.advantages([[episode(0, 0.4, 0.4)]])
    # one member: 0.4 and then 2 - 0.4 = 1.6, returns to go 2 and 1.6, minus their mean 1.8
    np.testing.assert_allclose(advantages[0], [0.2, -0.2])


def test_seed_and_the_group_decide() -> None:
    groups = [[replace(each, seed=seed) for each in GROUP] for seed in range(200)]
    first = [chosen(GroundTruthInjectedGRPO(injected_reward=9), group) for group in groups]
    again = [chosen(GroundTruthInjectedGRPO(injected_reward=9), group) for group in groups]
    other = [
        chosen(GroundTruthInjectedGRPO(injected_reward=9, injection_seed=1), group)
        for group in groups
    ]
    assert first == again
    assert first != other
    counts = np.bincount(first, minlength=4)
    assert (counts > 30).all(), "each member is as likely: 50 ± 3·6"


def test_replacements_are_all_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        GroundTruthInjectedGRPO().advantages([GROUP, [], [episode(0, 1.0, seed=6)]])
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert messages[1] == (
        "ground truth injected: group of seed 6, member 0, reward 1 replaced by 2"
    )


def test_episodes_stay_as_they_were() -> None:
    before = [each.reward for each in GROUP]
    GroundTruthInjectedGRPO().advantages([GROUP])
    assert [each.reward for each in GROUP] == before
