"""Tests `RolloutSource`: seeds, sharding over processes, replaced groups, and errors."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from tests.algos import toy
from visenv.algos.trainer.episode_sources import (
    RolloutSource,
    SelectionConfig,
    Shard,
)
from visenv.algos.trainer.episode_sources.selection import MOST_BATCHES
from visenv.policy import Policy, Session
from visenv.rollout import Collector, Executor, InlineExecutor, ThreadExecutor
from visenv.seeding import random_stream, seeds
from visenv.types import Group, Message, Reply, Sampling, StepResult, TurnRequest

GROUPS, SIZE, SEED = 5, 3, 11

pytestmark = pytest.mark.component("torch")


def drawn(step: int, count: int) -> list[int]:
    """Return the seeds of a step's first `count` groups, in the order in which they are played."""
    return seeds(random_stream(SEED, 1, step), count)


def played(share: Shard = Shard(), **options: Any) -> list[list[Group]]:  # noqa: B008
    policy = toy.ToyPolicy()
    collector = Collector(toy.Echo, policy)
    episode_source = RolloutSource(collector, policy, GROUPS, SIZE, SEED, share, **options)
    return [episode_source.groups(step, lambda _: None) for step in (0, 1)]


def test_step_plays_its_own_scenes_in_groups() -> None:
    for step, groups in enumerate(played()):
        assert [[each.seed for each in group] for group in groups] == [
            [seed] * SIZE for seed in drawn(step, GROUPS)
        ]
        assert [(each.group, each.member) for group in groups for each in group] == list(
            itertools.product(range(GROUPS), range(SIZE))
        )
    assert not set(drawn(0, GROUPS)) & set(drawn(1, GROUPS))


@pytest.mark.parametrize("count", [2, 3, 7])
def test_processes_play_together_what_one_would_play_alone(count: int) -> None:
    parts = [played(Shard(rank, count)) for rank in range(count)]
    together = [[group for part in parts for group in part[step]] for step in (0, 1)]
    assert together == played()


class Scored(gym.Env[Any, str]):
    """Pays the number in the action as the reward; shows the seed to the policy."""

    @override
    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        record = StepResult((Message("user", (str(seed),)),), (), TurnRequest())
        return None, {"step": record, "aborted": "", "truncated_by": ""}

    @override
    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        info = {"step": StepResult(), "aborted": "", "truncated_by": ""}
        return None, float(action), True, False, info


class Varied(Policy[Session]):
    """Earns different rewards within groups with an odd seed, and 1 in all other groups."""

    def __init__(self, hangs: tuple[int, ...] = ()) -> None:
        self.hangs = hangs
        self.members: Counter[str] = Counter()
        self.given_up = 0

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        scene = str(session.messages[0].parts[0])
        member = self.members[scene]
        self.members[scene] += 1
        if member in self.hangs:
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up += 1
        return Reply.of_text(str(member % 2) if int(scene) % 2 else "1")


def chosen(selection: SelectionConfig, executor: Executor) -> tuple[list[Group], Any]:
    collector = Collector(Scored, Varied(), executor=executor)
    episode_source = RolloutSource(collector, _Nothing(), 2, 2, SEED, selection=selection)  # type: ignore[arg-type]
    groups = episode_source.groups(0, lambda _: None)
    collector.close()
    return groups, episode_source.report()


class _Nothing:
    def train_mode(self, on: bool) -> None:
        assert not on


@pytest.mark.parametrize("executor", [InlineExecutor, ThreadExecutor])
def test_groups_that_teach_nothing_are_replaced_in_the_order_drawn(
    executor: type[Executor],
) -> None:
    groups, report = chosen(SelectionConfig(dynamic_sampling=True), executor())
    odd = [number for number, seed in enumerate(drawn(0, 2 * MOST_BATCHES)) if seed % 2]
    assert [group[0].group for group in groups] == odd[:2]
    assert [len({each.reward for each in group}) for group in groups] == [2, 2]
    needed = odd[1] + 1
    assert report["rollout/groups"] == needed
    assert report["rollout/zero_std"] == needed - 2


def test_replacing_groups_of_several_processes_do_not_meet() -> None:
    numbers = []
    for rank in range(2):
        collector = Collector(Scored, Varied())
        selection = SelectionConfig(dynamic_sampling=True)
        episode_source = RolloutSource(collector, _Nothing(), 4, 2, SEED, Shard(rank, 2), selection)  # type: ignore[arg-type]
        numbers.append([group[0].group for group in episode_source.groups(0, lambda _: None)])
    of_seeds = drawn(0, 20)
    # The first process has groups 0 and 1, then 4, 6, 8…; the second 2 and 3, then 5, 7, 9….
    candidates = [[0, 1, 4, 6, 8, 10, 12, 14, 16, 18], [2, 3, 5, 7, 9, 11, 13, 15, 17, 19]]
    for given, mine in zip(numbers, candidates, strict=True):
        assert given == [number for number in mine if of_seeds[number] % 2][:2]


class Bug(Varied):
    """Replies to the first requests, then raises while another request waits."""

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        if sum(self.members.values()) == 3:
            raise ZeroDivisionError
        return await super().respond(session, request, sampling)


def test_bug_ends_the_step_and_leaves_no_session_waiting() -> None:
    policy = Bug(hangs=(1,))
    episode_source = RolloutSource(Collector(Scored, policy), _Nothing(), 2, 2, SEED)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        episode_source.groups(0, lambda _: None)
    assert policy.given_up == 1


def test_report_contains_the_use_of_the_time() -> None:
    _, report = chosen(SelectionConfig(), InlineExecutor())
    assert report["rollout/episodes"] == 4
    assert report["rollout/groups"] == 2
    assert 0 <= report["rollout/engine_busy"] <= 1
    assert all(name.startswith("rollout/") for name in report)
