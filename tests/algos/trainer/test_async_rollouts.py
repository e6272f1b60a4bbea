"""Tests `AsyncRolloutSource`: how far it plays ahead, and the staleness of its episodes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.algos import toy
from tests.waiting import LIMIT, wait_until
from visenv.algos.trainer.episode_sources import (
    AsyncRolloutSource,
    RolloutSource,
    SelectionConfig,
)
from visenv.algos.trainer.journal import EpisodeJournal
from visenv.errors import ConfigurationError, RunError
from visenv.rollout import Collector
from visenv.seeding import random_stream, seeds
from visenv.types import Group

GROUPS, SIZE, SEED = 3, 2, 11

pytestmark = pytest.mark.component("torch")


def ahead(collector: Collector, policy: Any, **options: Any) -> AsyncRolloutSource:
    return AsyncRolloutSource(
        collector, policy, GROUPS, SIZE, SEED, **{"max_staleness": 1, **options}
    )


def of_steps(*steps: int) -> set[int]:
    return {seed for step in steps for seed in seeds(random_stream(SEED, 1, step), GROUPS)}


class Scenes:
    """Records the seeds of the scenes that have begun; can wait for given seeds."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.changed = threading.Condition()

    def __call__(self, seed: int) -> None:
        with self.changed:
            self.begun.append(seed)
            self.changed.notify_all()

    def wait_for(self, scenes: set[int]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: scenes <= set(self.begun), LIMIT)


def versions(groups: list[Group]) -> set[int]:
    segments = [each for group in groups for episode in group for each in episode.segments]
    return {int(v) for each in segments for v in each.policy_version[each.loss_mask]}


def test_async_source_without_staleness_is_the_synchronous_source() -> None:
    policy = toy.ToyPolicy()
    episode_source = ahead(Collector(toy.Echo, policy), policy, max_staleness=0)
    synchronous = RolloutSource(Collector(toy.Echo, policy), policy, GROUPS, SIZE, SEED)
    for step in range(3):
        assert episode_source.groups(step, lambda _: None) == synchronous.groups(
            step, lambda _: None
        )
        policy.updated()
    episode_source.close()


def test_ahead_plays_as_far_as_it_may_and_each_step_its_own_scenes() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    collector = Collector(lambda: toy.Echo(on_reset=scenes), engine)
    episode_source = ahead(collector, policy, max_staleness=2, steps=4)
    heard: list[int] = []
    for step in range(4):
        groups = episode_source.groups(step, lambda each: heard.append(each.seed))
        assert {each.seed for group in groups for each in group} == of_steps(step)
        scenes.wait_for(of_steps(*range(min(step + 3, 4))))
        assert set(scenes.begun) == of_steps(*range(min(step + 3, 4)))
        policy.updated()
        engine.updated()  # the new weights are sent
    assert len(scenes.begun) == 4 * GROUPS * SIZE  # no scene is played twice
    assert len(heard) == 4 * GROUPS * SIZE
    episode_source.close()


def test_tokens_are_at_most_as_old_as_allowed_and_their_age_is_reported() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    episode_source = ahead(Collector(lambda: toy.Echo(on_reset=scenes), engine), policy, steps=2)
    first = episode_source.groups(0, lambda _: None)
    assert versions(first) == {0}
    assert episode_source.report()["rollout/staleness"] == 0
    scenes.wait_for(of_steps(1))
    episode_source.report()  # wait for the other thread, which by then has played the next step
    policy.updated()
    engine.updated()
    assert versions(episode_source.groups(1, lambda _: None)) == {0}
    report = episode_source.report()
    assert (report["rollout/staleness"], report["rollout/stalest"]) == (1, 1)
    assert report["rollout/stale"] == 0
    assert report["rollout/waited_seconds"] >= 0
    episode_source.close()


def test_versions_count_as_many_as_a_step_makes() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    collector = Collector(lambda: toy.Echo(on_reset=scenes), engine)
    episode_source = ahead(collector, policy, updates=4, steps=2)
    episode_source.groups(0, lambda _: None)
    scenes.wait_for(of_steps(1))
    policy.version += 4
    episode_source.groups(1, lambda _: None)
    assert episode_source.report()["rollout/stalest"] == 1  # ceil(4 updates / 4 updates per step)
    episode_source.close()


def test_groups_that_are_too_old_are_dropped_and_replaced() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    collector = Collector(lambda: toy.Echo(on_reset=scenes), engine)
    episode_source = ahead(collector, policy, steps=2)
    episode_source.groups(0, lambda _: None)
    scenes.wait_for(of_steps(1))
    episode_source.report()
    policy.version = engine.version = 2  # two updates at once
    groups = episode_source.groups(1, lambda _: None)
    more = seeds(random_stream(SEED, 1, 1), 2 * GROUPS)[GROUPS:]
    assert [group[0].seed for group in groups] == more  # the groups drawn next
    assert versions(groups) == {2}
    report = episode_source.report()
    assert (report["rollout/stale"], report["rollout/stalest"]) == (GROUPS, 0)
    episode_source.close()


def test_weights_that_never_arrive_are_reported() -> None:
    engine, policy = toy.ToyPolicy(), toy.ToyPolicy()
    policy.version = 7
    episode_source = ahead(Collector(toy.Echo, engine), policy)
    with pytest.raises(RunError, match=r"step 1 .*more than 1 steps old.*do not reach"):
        episode_source.groups(0, lambda _: None)
    episode_source.close()


def test_bug_over_there_is_raised_here() -> None:
    class Broken(toy.ToyPolicy):
        @override
        async def respond(self, *arguments: Any) -> Any:
            raise ZeroDivisionError

    episode_source = ahead(Collector(toy.Echo, Broken()), toy.ToyPolicy())
    with pytest.raises(ZeroDivisionError):
        episode_source.groups(0, lambda _: None)
    episode_source.close()


def test_weights_that_change_are_not_sampled_from() -> None:
    policy = toy.ToyPolicy()
    with pytest.raises(ConfigurationError, match="separate engine is needed"):
        ahead(Collector(toy.Echo, policy), policy)
    with pytest.raises(ConfigurationError, match="at least 0"):
        ahead(Collector(toy.Echo, policy), policy, max_staleness=-1)


def test_closing_gives_up_what_is_being_played() -> None:
    asked = threading.Event()

    class Hanging(toy.ToyPolicy):
        @override
        async def respond(self, *arguments: Any) -> Any:
            import asyncio

            asked.set()
            await asyncio.Event().wait()

    episode_source = ahead(Collector(toy.Echo, Hanging()), toy.ToyPolicy())
    waiting = threading.Thread(target=_expect_cancelled, args=(episode_source,))
    waiting.start()
    assert asked.wait(LIMIT)
    # Step 1 has begun too, and `groups` waits for step 0.
    wait_until(lambda: list(episode_source._runs) == [1])
    episode_source.close()
    waiting.join(LIMIT)
    assert not waiting.is_alive()
    wait_until(lambda: not any(each.name == "visenv-ahead" for each in threading.enumerate()))


def _expect_cancelled(episode_source: AsyncRolloutSource) -> None:
    from concurrent.futures import CancelledError

    with pytest.raises(CancelledError):
        episode_source.groups(0, lambda _: None)


def test_groups_ahead_are_chosen_as_any() -> None:
    class Generous(toy.Echo):
        @override
        def step(self, action: str) -> Any:
            observation, _, *rest = super().step(action)
            return (observation, float(len(action)), *rest)

    selection = SelectionConfig(dynamic_sampling=True)
    engine, policy = toy.ToyPolicy(), toy.ToyPolicy()
    episode_source = ahead(Collector(Generous, engine), policy, selection=selection, steps=2)
    collector = Collector(Generous, engine)
    synchronous = RolloutSource(collector, policy, GROUPS, SIZE, SEED, selection=selection)
    for step in range(2):
        groups = episode_source.groups(step, lambda _: None)
        assert groups == synchronous.groups(step, lambda _: None)
        assert all(len({each.reward for each in group}) > 1 for group in groups)
    episode_source.close()


def test_groups_played_ahead_are_not_played_again(tmp_path: Path) -> None:
    def begin(scenes: Scenes) -> AsyncRolloutSource:
        collector = Collector(lambda: toy.Echo(on_reset=scenes), toy.ToyPolicy())
        episode_source = ahead(collector, toy.ToyPolicy(), steps=2)
        episode_source.journal = EpisodeJournal(tmp_path, {"run": "one"}, exact=False)
        return episode_source

    first, scenes = begin(Scenes()), Scenes()
    expected = [first.groups(step, lambda _: None) for step in range(2)]
    first.close()
    again = begin(scenes)
    assert [again.groups(step, lambda _: None) for step in range(2)] == expected
    assert scenes.begun == []
    assert again.report()["rollout/replayed"] == 2 * GROUPS * SIZE
    again.close()
