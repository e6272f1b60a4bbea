"""Tests slots: an episode takes the first available environment, whether idle or new."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from tests.waiting import LIMIT, until
from visenv.registration import load
from visenv.rollout import Collector, EpisodeSpec, Mixture, ThreadExecutor
from visenv.rollout import slots as slots_module
from visenv.rollout.hosts import LocalEnvHost
from visenv.testing import toy
from visenv.types import Failure

ADD = "<tool>\nname: add\namount: 3\n</tool>"
ANSWER = "<answer>3</answer>"


class Cluster:
    """Has places for a few environments, like a Ray cluster; counts the environments made.

    Attributes:
        patience: Seconds after which an environment without a place gives up.
        full: Set when as many environments were made as there are places.
        refused: Set when an environment got no place in time.
        before_turns: An event that every turn of an episode waits for.
    """

    def __init__(self, places: int) -> None:
        self.places = threading.Semaphore(places)
        self.made = 0
        self.patience = math.inf
        self.full, self.refused, self.before_turns = (threading.Event() for _ in range(3))
        self.before_turns.set()
        self._count = places
        self._lock = threading.Lock()

    def add(self) -> None:
        """Count an environment that has a place."""
        with self._lock:
            self.made += 1
            if self.made == self._count:
                self.full.set()


class CrowdedHost(LocalEnvHost):
    """Waits for a place, makes its environment, and keeps the place until it is closed."""

    def __init__(self, make: Callable[[], Any], cluster: Cluster) -> None:
        super().__init__(make)
        self._cluster = cluster
        self._killed = threading.Event()
        self._placed = False

    @override
    def open(self) -> Failure | None:
        until = time.monotonic() + self._cluster.patience
        while not self._cluster.places.acquire(timeout=0.02):
            if self._killed.is_set() or time.monotonic() > until:
                self._cluster.refused.set()
                return Failure("timeout", "timeout", "no place")
        self._placed = True
        self._cluster.add()
        return super().open()

    @override
    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        if method == "act":
            self._cluster.before_turns.wait(LIMIT)
        return super().call(method, arguments)

    @override
    def close(self) -> None:
        super().close()
        if self._placed:
            self._cluster.places.release()

    @override
    def kill(self) -> bool:
        self._killed.set()
        return True


class Crowded(ThreadExecutor):
    """Runs environments in threads, a few at a time."""

    crowded = True

    def __init__(self, cluster: Cluster, start_timeout: float) -> None:
        super().__init__(None, start_timeout)
        self._make_host = lambda make: CrowdedHost(make, cluster)


def collector_on(
    cluster: Cluster, start_timeout: float = LIMIT, make: Any = toy.make, **options: Any
) -> Collector:
    policy = load("policy", "scripted")([ADD, ANSWER])
    executor = Crowded(cluster, start_timeout)
    return Collector(make, policy, executor=executor, **options)


def specs(count: int) -> list[EpisodeSpec]:
    return [EpisodeSpec(7, 0, member) for member in range(count)]


def test_episodes_beyond_the_room_of_a_cluster_take_environments_that_become_idle() -> None:
    cluster = Cluster(2)
    cluster.before_turns = cluster.full  # otherwise one environment may play all episodes
    # A wait for `start_timeout` would exceed the time limit of the test.
    collector = collector_on(cluster, start_timeout=3600.0, concurrency=6)
    episodes = collector.episodes(specs(6))
    assert [episode.failure for episode in episodes] == [None] * 6
    assert cluster.made == 2
    collector.close()


def test_new_environment_without_room_does_not_abort_an_episode_while_others_play() -> None:
    cluster = Cluster(1)
    executor = Crowded(cluster, LIMIT)
    policy = load("policy", "scripted")([ADD, ANSWER])
    collector = Collector(toy.make, policy, executor=executor, concurrency=4)
    episodes = collector.episodes(specs(1))
    # Now new environments get no place in time; the single running one plays all episodes.
    executor._limits = executor._limits._replace(start=0.05)
    cluster.before_turns = cluster.refused
    episodes += collector.episodes(specs(4))
    assert [episode.failure for episode in episodes] == [None] * 5
    assert cluster.made == 1
    collector.close()


def test_cluster_without_any_room_is_a_failure_with_a_name() -> None:
    collector = collector_on(Cluster(0), start_timeout=0.2)
    (episode,) = collector.episodes(specs(1))
    assert episode.failure == Failure(
        "timeout", "timeout", "making the environment took longer than 0.2 s."
    )
    collector.close()


def test_idle_environments_of_one_name_make_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots_module, "_PATIENCE", 0.1)
    cluster = Cluster(1)
    mixture = Mixture({"a": toy.make, "b": toy.make}, {"a": 1.0, "b": 1.0})
    collector = collector_on(cluster, make=mixture, concurrency=2)
    for name in ("a", "b", "a"):
        (episode,) = collector.episodes([EpisodeSpec(7, 0, 0, env=name)])
        assert episode.failure is None
    assert cluster.made == 3
    collector.close()
    assert cluster.places.acquire(timeout=LIMIT)  # the last environment was closed too


def test_rarer_environment_of_a_mixture_is_not_aborted_on_a_full_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots_module, "_PATIENCE", 0.1)
    mixture = Mixture({"a": toy.make, "b": toy.make}, {"a": 1.0, "b": 1.0})
    cluster = Cluster(2)
    cluster.before_turns = cluster.full
    collector = collector_on(cluster, make=mixture, concurrency=24)
    named = [EpisodeSpec(7, 0, member, env="a" if member < 22 else "b") for member in range(26)]
    episodes = collector.episodes(named[:2])
    # Not a time limit of the executor: an environment with a place could exceed it as well.
    cluster.patience = 0.1
    cluster.before_turns = cluster.refused
    episodes += collector.episodes(named[2:])
    assert [episode.failure for episode in episodes] == [None] * 26
    collector.close()


class Slot:
    """Represents an environment that is ready when the test sets `ready`."""

    usable, begun = True, False

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = asyncio.Event()
        self.closed = False

    @property
    def made(self) -> bool:
        return self.ready.is_set()

    async def open(self) -> None:
        await self.ready.wait()

    async def call(self, method: str, **arguments: Any) -> Any:
        raise AssertionError("nobody plays here")

    def close(self) -> None:
        self.closed = True


class Full:
    """Records its slots, and is always crowded; counts how often this is asked."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.asked = 0

    @property
    def crowded(self) -> bool:
        self.asked += 1
        return True

    def slot(self, make_env: Any) -> Slot:
        self.slots.append(Slot(make_env))
        return self.slots[-1]

    def close(self) -> None:
        pass


async def full_of_a(count: int) -> tuple[Full, slots_module.EnvSlots, list[Any]]:
    """Return an executor without room, its slots, and those that play "a"."""
    executor: Any = Full()
    names: Any = {"a": "a", "b": "b"}
    slots = slots_module.EnvSlots(executor, names)
    taking = [asyncio.create_task(slots.take("a")) for _ in range(count)]
    await asyncio.sleep(0)
    for each in executor.slots:
        each.ready.set()
    return executor, slots, [await task for task in taking]


def test_released_environment_makes_room_for_the_episode_that_waits_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots_module, "_PATIENCE", 0.02)

    async def play() -> None:
        executor, slots, playing = await full_of_a(2)
        waiting = []
        for name in ("b", "a", "a"):
            waiting.append(asyncio.create_task(slots.take(name)))
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        for slot in playing:
            slots.give("a", slot, usable=True)
        # The first slot made room for b; the second stays with a, since b is starting already.
        assert [each.closed for each in executor.slots[:2]] == [True, False]
        assert await waiting[1] is playing[1]
        rare = next(each for each in executor.slots if each.name == "b")
        rare.ready.set()
        assert await waiting[0] is rare
        slots.close()
        waiting[2].cancel()

    asyncio.run(play())


def test_idle_environments_are_closed_once_for_each_that_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots_module, "_PATIENCE", 0.01)

    async def play() -> None:
        executor, slots, playing = await full_of_a(4)
        for slot in playing:
            slots.give("a", slot, usable=True)
        idle = list(executor.slots)
        waiting = [asyncio.create_task(slots.take("b")) for _ in range(3)]

        async def closed(count: int) -> None:
            """Wait until so many are closed and every waiting episode has looked again."""
            await until(lambda: sum(each.closed for each in idle) >= count)
            asked = executor.asked
            await until(lambda: executor.asked >= asked + 4 * len(waiting))
            assert sum(each.closed for each in idle) == count

        await closed(1)
        executor.slots[4].ready.set()  # the other new environments are slow to start
        await closed(2)
        for each in executor.slots:
            each.ready.set()
        await asyncio.gather(*waiting)
        slots.close()

    asyncio.run(play())


def test_environment_that_cannot_be_made_fails_each_episode_that_waits_for_it() -> None:
    def impossible() -> gym.Env[Any, Any]:
        raise ZeroDivisionError("no such world")

    collector = collector_on(Cluster(2), make=impossible, concurrency=4)
    episodes = collector.episodes(specs(4))
    assert [each.failure.reason for each in episodes if each.failure] == ["no such world"] * 4
    collector.close()
