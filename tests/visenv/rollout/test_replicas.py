"""Tests several engines as one: the engine of each episode, and weights that reach all engines."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import EnginePolicy, Session
from visenv.rollout import Collector, Replicas
from visenv.testing import toy
from visenv.types import Reply, Sampling, TurnRequest


class Engine(EnginePolicy[Session]):
    """Replies with its name; records the weights it loads, and refuses the one named `refuses`."""

    def __init__(self, name: str = "", refuses: str = "") -> None:
        self.name = name
        self.version = 0
        self.stale = False
        self.refuses = refuses
        self.weights: list[tuple[str, float]] = []
        self.done: list[str] = []

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        if self.stale:
            raise PolicyError("no weights")
        await asyncio.sleep(0)
        return Reply.of_text(f"<answer>{self.name}</answer>")

    @override
    def load(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        self.stale = True
        for name, weight in weights:
            if name == self.refuses:
                raise PolicyError(f"{self.name} does not know {name}")
            self.weights.append((name, float(weight[0])))
        self.version, self.stale = version, False

    @override
    def sleep(self) -> None:
        self.done.append("sleep")

    @override
    def wake(self) -> None:
        self.done.append("wake")

    @override
    def close(self) -> None:
        self.done.append("close")


def fleeting(count: int) -> Iterator[tuple[str, list[float]]]:
    """Yield weights that are overwritten when the next one is requested."""
    for number in range(count):
        weight = [float(number)]
        yield f"w{number}", weight
        weight[0] = -1.0


@pytest.mark.slow
def test_episodes_go_where_the_fewest_are() -> None:
    engines = [Engine("a"), Engine("b"), Engine("c")]
    replicas = Replicas(engines)
    sessions = [replicas.open(0) for _ in range(6)]
    texts = [
        asyncio.run(replicas.respond(session, TurnRequest(), Sampling())).text
        for session in sessions
    ]
    assert sorted(texts) == sorted(2 * [f"<answer>{name}</answer>" for name in "abc"])
    first = texts[0]
    del sessions[0], sessions[2]  # both sessions of the first engine end
    gc.collect()
    later = [replicas.open(0) for _ in range(2)]
    said = [asyncio.run(replicas.respond(each, TurnRequest(), Sampling())).text for each in later]
    assert said == [first, first]


def test_engine_that_lacks_its_weights_gets_no_episodes() -> None:
    engines = [Engine("a"), Engine("b")]
    engines[0].stale = True
    replicas = Replicas(engines)
    assert replicas.stale
    collector = Collector(toy.make, replicas)
    (group,) = collector.groups([0], 4)
    assert {episode.turns[0].text for episode in group} == {"<answer>b</answer>"}
    replicas.load(fleeting(1), 1)
    assert not replicas.stale
    (group,) = collector.groups([0], 4)
    assert len({episode.turns[0].text for episode in group}) == 2
    collector.close()


def test_episode_of_a_lost_engine_is_played_by_another() -> None:
    class Dying(Engine):
        @override
        async def respond(
            self, session: Session, request: TurnRequest, sampling: Sampling
        ) -> Reply:
            self.stale = True
            return await super().respond(session, request, sampling)

    collector = Collector(toy.make, Replicas([Dying("a"), Engine("b")]), retries=1)
    (group,) = collector.groups([0], 4)
    assert {episode.turns[0].text for episode in group} == {"<answer>b</answer>"}
    collector.close()


def test_weights_are_read_once_and_taken_over_by_all() -> None:
    engines = [Engine("a"), Engine("b"), Engine("c")]
    replicas = Replicas(engines)
    replicas.load(fleeting(20), version=7)
    expected = [(f"w{number}", float(number)) for number in range(20)]
    assert [engine.weights for engine in engines] == [expected] * 3
    assert replicas.version == 7


def test_engine_that_refuses_a_weight_keeps_none_from_the_others() -> None:
    engines = [Engine("a", refuses="w3"), Engine("b")]
    replicas = Replicas(engines)
    with pytest.raises(PolicyError, match="a does not know w3"):
        replicas.load(fleeting(6), version=1)
    assert [engine.stale for engine in engines] == [True, False]
    assert (replicas.version, len(engines[1].weights)) == (0, 6)


def test_weights_that_end_early_end_for_all() -> None:
    def broken() -> Iterator[tuple[str, list[float]]]:
        yield from fleeting(2)
        raise RuntimeError("the trainer is gone")

    with pytest.raises(RuntimeError, match="trainer is gone"):
        Replicas([Engine("a"), Engine("b")]).load(broken(), 1)


def test_replicas_sleep_wake_and_close_together() -> None:
    engines = [Engine("a"), Engine("b")]
    replicas = Replicas(engines)
    replicas.sleep()
    replicas.wake()
    replicas.close()
    assert [engine.done for engine in engines] == [["sleep", "wake", "close"]] * 2
    with pytest.raises(ConfigurationError, match="at least one"):
        Replicas([])
