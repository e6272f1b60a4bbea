"""Tests deterministic mode: an episode that is repeated holds the others back."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from tests.waiting import until
from visenv.errors import ServiceError
from visenv.policies.oracle import OraclePolicy
from visenv.policy import Session
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper
from visenv.rollout import Collector, EpisodeSpec
from visenv.testing import toy
from visenv.types import Reply, Sampling, TurnRequest

Env = gym.Env[Any, str]


FIRST, SECOND = EpisodeSpec(0), EpisodeSpec(1, 1)


class Counting(OraclePolicy):
    """Counts the turns of the second episode, and makes it wait for the first verdict.

    Args:
        waits_after: Number of turns of the second episode after which it waits.
        ended: The list to which the verdict is added.
    """

    def __init__(self, waits_after: int, ended: list[str]) -> None:
        super().__init__()
        self.waits_after = waits_after
        self.ended = ended
        self.turns = 0

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        if sampling.seed == SECOND.policy_seed:
            if self.turns == self.waits_after:
                await until(lambda: self.ended)
            self.turns += 1
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


# The second episode fails in its second turn. Its retry has three turns.
@pytest.mark.parametrize(
    "turns", [0, 3, 5], ids=["before the failure", "during the retry", "after the retry"]
)
def test_retry_holds_back_others_whenever_their_verdicts_arrive(turns: int) -> None:
    ended: list[str] = []
    policy = Counting(turns, ended)

    async def judge(context: RewardContext) -> float:
        await until(lambda: policy.turns == turns or ended)
        ended.append("verdict")
        return 1.0

    class Failing(FailsOnce):
        episodes = 0
        failed = False

    def make() -> Env:
        return RewardWrapper(Failing(toy.make().unwrapped), [RewardTerm("judge", 1.0, judge)])

    collector = Collector(make, policy, retries=1, deterministic=True)
    episodes = collector.episodes([FIRST, SECOND], lambda episode: ended.append(str(episode.group)))
    assert [episode.failure for episode in episodes] == [None, None]
    assert collector.stats.take()["retries"] == 1
    # Both episodes are released after both verdicts, in any order of the verdicts.
    assert ended == ["verdict", "verdict", "0", "1"]
