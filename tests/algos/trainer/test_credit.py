"""Tests credit assignment: each advantage applies to exactly the tokens of its turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from tests.algos import toy
from visenv.algorithm import Algorithm
from visenv.algos.trainer.credit import TokenCounts, credit, with_advantages


class _Fixed(Algorithm):
    def __init__(self, advantage: Any) -> None:
        self.advantage = np.asarray(advantage, np.float64)

    @override
    def advantages(self, groups: Any) -> Any:
        return [[self.advantage for _ in group] for group in groups]

    @override
    def loss(self, batch: Any) -> Any:
        raise NotImplementedError


@pytest.mark.component("torch")
@pytest.mark.parametrize(
    ("advantage", "expected"),
    [
        # tokens: a, A, end, image, b, B, end; the policy sampled A, end and B, end
        (2.0, [0, 2, 2, 0, 0, 2, 2]),
        ([1.0, -3.0], [0, 1, 1, 0, 0, -3, -3]),
    ],
)
def test_credit_by_hand(advantage: Any, expected: list[float]) -> None:
    episode = toy.ToyPolicy().encode(toy.demonstration("a", "b"))
    (credited,) = credit(_Fixed(advantage), [[episode]]).own
    assert credited.advantages.tolist() == expected
    assert credited.advantages.dtype == np.float32
    assert credited.images.keys() == {episode.images[0].sha256}


@pytest.mark.component("torch")
def test_segments_of_all_episodes_are_there_in_order() -> None:
    policy = toy.ToyPolicy()
    groups = [[policy.encode(toy.demonstration(a, b)) for b in "ab"] for a in "cd"]
    segments = [each.segment for each in credit(_Fixed(1.0), groups).own]
    assert segments == [episode.segments[0] for group in groups for episode in group]


@pytest.mark.component("torch")
def test_segments_know_the_tokens_of_their_episode() -> None:
    whole = toy.ToyPolicy().encode(toy.demonstration("a", "b"))  # A, end and B, end are sampled
    data = credit(_Fixed([1.0, -3.0]), [[toy.divided(whole), whole], [whole]])
    assert [each.episode_tokens for each in data.own] == [4, 4, 4, 4]
    assert [int(each.segment.loss_mask.sum()) for each in data.own] == [2, 2, 4, 4]
    assert [each.advantages.tolist() for each in data.own[:2]] == [[0, 1, 1], [0, 0, -3, -3]]
    assert data.sizes == [TokenCounts(tokens=8, episodes=2), TokenCounts(tokens=4, episodes=1)]


@pytest.mark.component("torch")
@pytest.mark.parametrize(("advantage", "expected"), [(2.0, [2.0, 2.0]), ([1.0, -3.0], [1.0, -3.0])])
def test_with_advantages_leaves_out_groups_that_were_not_trained_on(
    advantage: Any, expected: list[float]
) -> None:
    first, second, third = (toy.demonstration("a", "b") for _ in range(3))  # equal, not identical
    marked = with_advantages(_Fixed(advantage), [[first, second], [third]], [[second], [third]])
    given = [[turn.advantage for turn in episode.turns] for episode in marked]
    assert given == [[None, None], expected, expected]
    assert marked[0] is first
