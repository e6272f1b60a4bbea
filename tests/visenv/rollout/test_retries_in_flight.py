"""Tests deterministic mode: an episode that is repeated holds the others back."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from visenv.errors import ServiceError
from visenv.policies.oracle import OraclePolicy
from visenv.policy import Session
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper
from visenv.rollout import Collector, EpisodeSpec
from visenv.testing import toy
from visenv.types import Reply, Sampling, TurnRequest

Env = gym.Env[Any, str]


class SlowSecond(OraclePolicy):
    """Sleeps in every turn, so that a verdict may arrive between two turns."""

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        await asyncio.sleep(0.05)
        return await super().respond(session, request, sampling)


class FailsOnce(gym.Wrapper[Any, str, Any, str]):
    """Raises once: in the second step of the second episode."""

    episodes = 0
    failed = False

    @override
    def reset(self, **options: Any) -> Any:
        type(self).episodes += 1
        self._number = self.episodes
        self._steps = 0
        return super().reset(**options)

    @override
    def step(self, action: str) -> Any:
        self._steps += 1
        if self._number == 2 and self._steps == 2 and not self.failed:
            type(self).failed = True
            raise ServiceError("tool", "away")
        return super().step(action)


@pytest.mark.parametrize("delay", [0.0, 0.4])
def test_retry_holds_back_others_whenever_their_verdicts_arrive(
    delay: float,
) -> None:
    ended: list[str] = []

    async def judge(context: RewardContext) -> float:
        await asyncio.sleep(delay)
        ended.append("verdict")
        return 1.0

    class Failing(FailsOnce):
        episodes = 0
        failed = False

    def make() -> Env:
        return RewardWrapper(Failing(toy.make().unwrapped), [RewardTerm("judge", 1.0, judge)])

    collector = Collector(make, SlowSecond(), retries=1, deterministic=True)
    episodes = collector.episodes(
        [EpisodeSpec(0), EpisodeSpec(1, 1)], lambda episode: ended.append(str(episode.group))
    )
    assert [episode.failure for episode in episodes] == [None, None]
    assert collector.stats.take()["retries"] == 1
    # Both episodes are released after both verdicts, in any order of the verdicts.
    assert ended == ["verdict", "verdict", "0", "1"]
