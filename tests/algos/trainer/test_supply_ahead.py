"""Playing ahead: as far as it may and no further, with nothing older than it may be."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.algos import toy
from visenv.algos.trainer.journal import Journal
from visenv.algos.trainer.supply import Ahead, Played, Selection, random_stream
from visenv.errors import ConfigurationError, RunError
from visenv.rollout import Collector
from visenv.seeding import seeds
from visenv.types import Group

GROUPS, SIZE, SEED = 3, 2, 11

pytestmark = pytest.mark.component("torch")


def ahead(collector: Collector, policy: Any, **options: Any) -> Ahead:
    return Ahead(collector, policy, GROUPS, SIZE, SEED, **{"max_staleness": 1, **options})


def of_steps(*steps: int) -> set[int]:
    return {seed for step in steps for seed in seeds(random_stream(SEED, 1, step), GROUPS)}


class Scenes:
    """Which scenes have begun, and a way to wait for them."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.changed = threading.Condition()

    def __call__(self, seed: int) -> None:
        with self.changed:
            self.begun.append(seed)
            self.changed.notify_all()

    def wait_for(self, scenes: set[int]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: scenes <= set(self.begun), 60)


def versions(groups: list[Group]) -> set[int]:
    segments = [each for group in groups for episode in group for each in episode.segments]
    return {int(v) for each in segments for v in each.policy_version[each.loss_mask]}


def test_ahead_without_staleness_is_the_synchronous_supply() -> None:
    policy = toy.ToyPolicy()
    supply = ahead(Collector(toy.Echo, policy), policy, max_staleness=0)
    synchronous = Played(Collector(toy.Echo, policy), policy, GROUPS, SIZE, SEED)
    for step in range(3):
        assert supply.groups(step, lambda _: None) == synchronous.groups(step, lambda _: None)
        policy.updated()
    supply.close()


def test_ahead_plays_as_far_as_it_may_and_each_step_its_own_scenes() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    collector = Collector(lambda: toy.Echo(on_reset=scenes), engine)
    supply = ahead(collector, policy, max_staleness=2, steps=4)
    heard: list[int] = []
    for step in range(4):
        groups = supply.groups(step, lambda each: heard.append(each.seed))
        assert {each.seed for group in groups for each in group} == of_steps(step)
        scenes.wait_for(of_steps(*range(min(step + 3, 4))))
        assert set(scenes.begun) == of_steps(*range(min(step + 3, 4)))
        policy.updated()
        engine.updated()  # the new weights are sent
    assert len(scenes.begun) == 4 * GROUPS * SIZE  # none twice
    assert len(heard) == 4 * GROUPS * SIZE
    supply.close()


def test_tokens_are_as_old_as_they_may_be_and_it_is_told() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    supply = ahead(Collector(lambda: toy.Echo(on_reset=scenes), engine), policy, steps=2)
    first = supply.groups(0, lambda _: None)
    assert versions(first) == {0}
    assert supply.report()["rollout/staleness"] == 0
    scenes.wait_for(of_steps(1))
    supply.report()  # on the other thread: what is being played has been by then
    policy.updated()
    engine.updated()
    assert versions(supply.groups(1, lambda _: None)) == {0}
    report = supply.report()
    assert (report["rollout/staleness"], report["rollout/stalest"]) == (1, 1)
    assert report["rollout/stale"] == 0
    assert report["rollout/waited_seconds"] >= 0
    supply.close()


def test_versions_count_as_many_as_a_step_makes() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    collector = Collector(lambda: toy.Echo(on_reset=scenes), engine)
    supply = ahead(collector, policy, updates=4, steps=2)
    supply.groups(0, lambda _: None)
    scenes.wait_for(of_steps(1))
    policy.version += 4
    supply.groups(1, lambda _: None)
    assert supply.report()["rollout/stalest"] == 1  # ceil(4 updates / 4 in a step)
    supply.close()


def test_groups_that_are_too_old_are_dropped_and_replaced() -> None:
    scenes, engine, policy = Scenes(), toy.ToyPolicy(), toy.ToyPolicy()
    collector = Collector(lambda: toy.Echo(on_reset=scenes), engine)
    supply = ahead(collector, policy, steps=2)
    supply.groups(0, lambda _: None)
    scenes.wait_for(of_steps(1))
    supply.report()
    policy.version = engine.version = 2  # two updates at once
    groups = supply.groups(1, lambda _: None)
    more = seeds(random_stream(SEED, 1, 1), 2 * GROUPS)[GROUPS:]
    assert [group[0].seed for group in groups] == more  # the next ones drawn
    assert versions(groups) == {2}
    report = supply.report()
    assert (report["rollout/stale"], report["rollout/stalest"]) == (GROUPS, 0)
    supply.close()


def test_weights_that_never_arrive_are_told() -> None:
    engine, policy = toy.ToyPolicy(), toy.ToyPolicy()
    policy.version = 7
    supply = ahead(Collector(toy.Echo, engine), policy)
    with pytest.raises(RunError, match=r"step 1 .*more than 1 steps old.*do not reach"):
        supply.groups(0, lambda _: None)
    supply.close()


def test_bug_over_there_is_raised_here() -> None:
    class Broken(toy.ToyPolicy):
        @override
        async def respond(self, *arguments: Any) -> Any:
            raise ZeroDivisionError

    supply = ahead(Collector(toy.Echo, Broken()), toy.ToyPolicy())
    with pytest.raises(ZeroDivisionError):
        supply.groups(0, lambda _: None)
    supply.close()


def test_weights_that_change_are_not_sampled_from() -> None:
    policy = toy.ToyPolicy()
    with pytest.raises(ConfigurationError, match="needs an engine of its own"):
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

    supply = ahead(Collector(toy.Echo, Hanging()), toy.ToyPolicy())
    waiting = threading.Thread(target=_expect_cancelled, args=(supply,))
    waiting.start()
    assert asked.wait(60)
    while list(supply._runs) != [1]:  # until the next step has begun too, and it waits for this
        time.sleep(0.01)
    supply.close()
    waiting.join(60)
    assert not waiting.is_alive()
    assert not [each for each in threading.enumerate() if each.name == "visenv-ahead"]


def _expect_cancelled(supply: Ahead) -> None:
    from concurrent.futures import CancelledError

    with pytest.raises(CancelledError):
        supply.groups(0, lambda _: None)


def test_groups_ahead_are_chosen_as_any() -> None:
    class Generous(toy.Echo):
        @override
        def step(self, action: str) -> Any:
            observation, _, *rest = super().step(action)
            return (observation, float(len(action)), *rest)

    selection = Selection(distinct=True, spare_groups=30)
    engine, policy = toy.ToyPolicy(), toy.ToyPolicy()
    supply = ahead(Collector(Generous, engine), policy, selection=selection, steps=2)
    collector = Collector(Generous, engine)
    synchronous = Played(collector, policy, GROUPS, SIZE, SEED, selection=selection)
    for step in range(2):
        groups = supply.groups(step, lambda _: None)
        assert groups == synchronous.groups(step, lambda _: None)
        assert all(len({each.reward for each in group}) > 1 for group in groups)
    supply.close()


def test_groups_played_ahead_are_not_played_again(tmp_path: Path) -> None:
    def begin(scenes: Scenes) -> Ahead:
        collector = Collector(lambda: toy.Echo(on_reset=scenes), toy.ToyPolicy())
        supply = ahead(collector, toy.ToyPolicy(), steps=2)
        supply.journal = Journal(tmp_path, {"run": "one"}, exact=False)
        return supply

    first, scenes = begin(Scenes()), Scenes()
    expected = [first.groups(step, lambda _: None) for step in range(2)]
    first.close()
    again = begin(scenes)
    assert [again.groups(step, lambda _: None) for step in range(2)] == expected
    assert scenes.begun == []
    assert again.report()["rollout/replayed"] == 2 * GROUPS * SIZE
    again.close()
