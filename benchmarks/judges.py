"""Measures rollouts whose reward asks a slow judge, with deferred terms and with a blocking judge.

    python benchmarks/judges.py

Episodes consist of two additions and an answer (`visenv.testing.toy`). The oracle plays them in a
negligible time, so that the wait for the judge is measured. All requests differ, so that no verdict
comes from a cache.

- 64 episodes, and a judge that takes 200 ms for a batch of up to 16 requests, one batch after
  another: 4 batches take 0.8 s, and at most 1.5 s are allowed.
- 8 episodes, and a judge that takes 250 ms for one request, for any number of concurrent requests.

Ways: the default executor and the thread executor, whose reward terms are deferred; and a term that
    blocks its step (`time.sleep`, as in a loop without deferred terms), on both executors.
"""

from __future__ import annotations

import asyncio
import itertools
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from typing_extensions import override

from visenv.policies.oracle import OraclePolicy
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper
from visenv.rollout import Collector, Env, Executor, InlineExecutor, ThreadExecutor
from visenv.scorers import Scorer, ScorerBackend, ScoreRequest, ServiceLimits
from visenv.testing import toy

ROUNDS = 3
ALLOWED_SECONDS = 1.5


@dataclass(frozen=True)
class Question(ScoreRequest):
    """Is a request of an episode; `number` makes it different from all others."""

    kind: ClassVar[str] = "benchmark question"
    sample: str
    number: int


class SlowJudge(ScorerBackend):
    """Waits a fixed time for each batch.

    Args:
        seconds: Duration of a batch.
    """

    limits = ServiceLimits(max_delay=0.005)
    main_option = "seconds"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    @property
    @override
    def model(self) -> str:
        return "slow"

    @override
    async def score_batch(self, requests: Sequence[ScoreRequest]) -> Sequence[float]:
        await asyncio.sleep(self._seconds)
        return [1.0] * len(requests)


def deferred(scorer: Scorer, number: int) -> RewardTerm:
    async def judge(context: RewardContext) -> float:
        verdict = await scorer.score(Question(context.sample.id, number))
        return float(verdict.value)

    return RewardTerm("judge", 1.0, judge)


def blocking(seconds: float, _: int) -> RewardTerm:
    def judge(context: RewardContext) -> float:
        time.sleep(seconds)
        return 1.0

    return RewardTerm("judge", 1.0, judge)


def seconds_of(episodes: int, term: RewardTerm, make_executor: Callable[[], Executor]) -> float:
    """Return the seconds of one rollout."""

    def make_env() -> Env:
        return RewardWrapper(toy.make().unwrapped, [term])

    collector = Collector(make_env, OraclePolicy(), executor=make_executor())
    start = time.perf_counter()
    groups = collector.groups(range(episodes))
    seconds = time.perf_counter() - start
    collector.close()
    assert [episode.reward for (episode,) in groups] == [1.0] * episodes
    return seconds


def measure(episodes: int, ways: dict[str, Any]) -> dict[str, float]:
    """Return the median seconds of each way; all ways are measured in turn."""
    numbers = itertools.count()
    rounds = [
        {
            name: seconds_of(episodes, make_term(next(numbers)), executor)
            for name, (make_term, executor) in ways.items()
        }
        for _ in range(ROUNDS)
    ]
    return {name: statistics.median(each[name] for each in rounds) for name in ways}


def show(title: str, measured: dict[str, float]) -> None:
    print(f"{title}:")
    first = next(iter(measured.values()))
    for name, seconds in measured.items():
        print(f"  {name:36} {seconds:6.2f} s   {seconds / first:5.2f} times the default executor")


def main() -> None:
    print(f"python {platform.python_version()}; median of {ROUNDS} rounds")
    name = f"{__name__}:SlowJudge"
    batched = Scorer(name, seconds=0.2, max_batch_size=16)
    many = measure(
        64,
        {
            "default executor, deferred": (partial(deferred, batched), InlineExecutor),
            "threads, deferred": (partial(deferred, batched), ThreadExecutor),
        },
    )
    show("64 episodes, a judge of 200 ms for up to 16 requests", many)
    single = Scorer(name, seconds=0.25, max_concurrency=8)
    few = measure(
        8,
        {
            "default executor, deferred": (partial(deferred, single), InlineExecutor),
            "threads, deferred": (partial(deferred, single), ThreadExecutor),
            "threads, blocking": (partial(blocking, 0.25), ThreadExecutor),
            "default executor, blocking": (partial(blocking, 0.25), InlineExecutor),
        },
    )
    show("8 episodes, a judge of 250 ms", few)
    ratio = few["default executor, deferred"] / few["threads, blocking"]
    print(
        f"64 episodes took {many['default executor, deferred']:.2f} s of at most "
        f"{ALLOWED_SECONDS} s; 8 episodes took {ratio:.2f} times as long as on threads (at most 1)"
    )


if __name__ == "__main__":
    main()
