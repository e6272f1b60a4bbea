"""Tests that all executors play the same episodes, and leave no threads and processes behind."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typing_extensions import override

from tests.environments import few
from tests.listeners import Listener, family, listeners, require_listed
from tests.waiting import LIMIT, wait_until
from visenv.env import EpisodeLimits, Observation
from visenv.grammar import KeyValueGrammar
from visenv.policy import Policy, Session
from visenv.registration import load
from visenv.rollout import (
    Collector,
    EpisodeSpec,
    Executor,
    InlineExecutor,
    ProcessExecutor,
    ThreadExecutor,
)
from visenv.rollout.hosts import ProcessEnvHost
from visenv.scorers.services import share
from visenv.testing import toy
from visenv.testing.toy import OPENED, REACHED
from visenv.tools import Store, Tool, ToolResult
from visenv.types import Episode, Reply, Sampling, TurnRequest

ADD = "<tool>\nname: add\namount: {}\n</tool>"
ANSWER = "<answer>3</answer>"


class Drawing(Policy[Session]):
    """Adds numbers drawn from its seed, after a random number of turns of the event loop."""

    @override
    def open(self, seed: int) -> Session:
        session: Any = Session()
        session.rng = np.random.default_rng(seed)
        return session  # type: ignore[no-any-return]

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        for _ in range(time.monotonic_ns() % 4):
            await asyncio.sleep(0)
        rng = session.rng  # type: ignore[attr-defined]
        amount = int(rng.integers(100))
        reply = Reply.of_text(ADD.format(amount) if rng.random() < 0.7 else ANSWER)
        session.said(reply)
        return reply


def groups_of(executor: Executor, concurrency: int = 5) -> Any:
    collector = Collector(toy.make, Drawing(), concurrency=concurrency, executor=executor)
    groups = collector.groups(range(4), 3)
    collector.close()
    return groups


@pytest.mark.slow
@pytest.mark.attack("servers: the table of listeners is complete")
def test_environment_in_a_process_needs_only_the_socket_of_the_scorers() -> None:
    before = listeners(family(os.getpid()))  # of other files, too
    host = ProcessEnvHost(toy.make)
    assert host.open() is None
    found = listeners(family(os.getpid()))
    require_listed("scorers", {Listener(share().path)})
    assert found - before <= {Listener(share().path)}
    host.close()


@pytest.mark.slow
def test_executors_play_the_same_groups_for_the_same_seeds() -> None:
    before, children = worker_threads(), set(multiprocessing.active_children())
    expected = groups_of(InlineExecutor())
    assert groups_of(InlineExecutor()) == expected
    assert groups_of(ThreadExecutor()) == expected
    assert groups_of(ProcessExecutor(), concurrency=2) == expected
    # A closed collector leaves no threads and processes behind.
    wait_until(lambda: worker_threads() <= before)
    assert set(multiprocessing.active_children()) <= children


def worker_threads() -> set[threading.Thread]:
    """Return the threads of executors and pools.

    The process-wide thread of scorers is not included.
    """
    return {
        each
        for each in threading.enumerate()
        if each.name.startswith(("visenv-pool", "visenv-step"))
    }


ADVISED: dict[str, Callable[[], Policy[Any]]] = {
    "oracle": load("policy", "oracle"),
    "cot": partial(load("policy", "cot"), "scripted", turns=["<think>3</think>", "x"] * 4),
    "hasty oracle": partial(load("policy", "oracle"), expert_rate=0.5, guess=True),
    "teacher": partial(load("policy", "teacher"), strength=2.0, most=5),
    "random": load("policy", "random"),
    "direct": partial(load("policy", "direct"), "scripted", turns=["<answer>3</answer>"] * 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("make_policy", few([*ADVISED.values()], 2), ids=list(ADVISED))
def test_advised_policies_play_the_same_episodes_in_every_executor(
    make_policy: Callable[[], Policy[Any]],
) -> None:
    def played(executor: Executor) -> list[Episode]:
        collector = Collector(toy.make, make_policy(), executor=executor, concurrency=2)
        episodes = collector.episodes([EpisodeSpec(seed, seed, 0) for seed in range(6)])
        collector.close()
        return episodes

    expected = played(InlineExecutor())
    assert all(episode.turns and episode.failure is None for episode in expected)
    assert played(ThreadExecutor()) == expected
    assert played(ProcessExecutor()) == expected


class Waiting(Policy[Session]):
    """Waits without end, and counts its cancellations."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.aborted = 0

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        raise AssertionError("unreachable")


def test_cancelled_episode_aborts_its_request_and_keeps_the_environment() -> None:
    made: list[int] = []

    def make() -> gym.Env[Observation, str]:
        made.append(1)
        return toy.make()

    async def run() -> None:
        policy = Waiting()
        collector.policy = policy
        for _ in range(2):
            playing = asyncio.create_task(collector.play(EpisodeSpec(0)))
            await policy.asked.wait()
            policy.asked.clear()
            playing.cancel()
            await asyncio.wait({playing})
            assert playing.cancelled()
        assert policy.aborted == 2

    collector = Collector(make, Drawing(), concurrency=1, executor=ThreadExecutor())
    asyncio.run(run())
    assert made == [1]
    assert collector.stats.take()["cancelled"] == 2
    collector.close()


def test_cancelled_episode_leaves_a_call_behind() -> None:
    gate = uuid.uuid4().hex
    wait = f'<tool>\nname: trouble\nkind: wait\ngate: "{gate}"\n</tool>'

    async def run() -> None:
        playing = asyncio.create_task(collector.play(EpisodeSpec(0)))
        await asyncio.to_thread(REACHED[gate].wait, LIMIT)
        playing.cancel()
        await asyncio.wait({playing})
        assert playing.cancelled()
        collector.policy = load("policy", "scripted")([ANSWER])
        assert (
            await collector.play(EpisodeSpec(0))
        ).status == "terminated"  # in another environment

    executor = ThreadExecutor()
    collector = Collector(
        partial(toy.make, trouble=True), load("policy", "scripted")([wait]), executor=executor
    )
    asyncio.run(run())
    OPENED[gate].set()
    collector.close()
    executor.close(grace=LIMIT)
    assert not any(worker.alive for worker in executor._workers)


class Slow(Tool[toy.AddArguments]):
    """Waits in a coroutine, so that its step runs in a thread of the executor."""

    name = "add"
    description = "Waits."
    arguments = toy.AddArguments

    def __init__(self) -> None:
        self.begun, self.gate, self.closed = (threading.Event() for _ in range(3))

    @override
    async def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        self.begun.set()
        await asyncio.to_thread(self.gate.wait, LIMIT)
        return ToolResult(("waited",))

    @override
    def close(self) -> None:
        assert self.gate.is_set(), "closed during a step"
        self.closed.set()


def test_environment_whose_step_still_runs_in_a_thread_is_not_used_again() -> None:
    first, second = Slow(), Slow()
    tools = [second, first]

    def make() -> gym.Env[Observation, str]:
        return toy.Adder(
            source=toy.Sums(),
            grammar=KeyValueGrammar(),
            tools=[tools.pop()],
            limits=EpisodeLimits(turns=4),
        )

    async def run() -> None:
        playing = asyncio.create_task(collector.play(EpisodeSpec(0)))
        await asyncio.to_thread(first.begun.wait, LIMIT)
        playing.cancel()
        await asyncio.wait({playing})
        collector.policy = load("policy", "scripted")([ANSWER])
        assert (await collector.play(EpisodeSpec(1))).status == "terminated"
        assert (tools, first.closed.is_set()) == ([], False)
        first.gate.set()
        assert await asyncio.to_thread(first.closed.wait, LIMIT)

    collector = Collector(make, load("policy", "scripted")([ADD.format(1)]))
    asyncio.run(run())
    second.gate.set()
    collector.close()


class Noting(ThreadExecutor):
    """Records its slots."""

    def __init__(self) -> None:
        super().__init__(timeout=3600.0)
        self.slots: list[Any] = []

    @override
    def slot(self, make_env: Any) -> Any:
        self.slots.append(super().slot(make_env))
        return self.slots[-1]


class Computing(Policy[Session]):
    """Blocks the event loop for longer than the time limit, like a model that runs on the loop.

    The clock of the loop is set forward instead of waiting: a limit that really passes on the loop
    would also pass for a slow thread.
    """

    def __init__(self, executor: Noting) -> None:
        self.executor = executor
        self.ahead = 0.0

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        said = len(session.messages)
        await asyncio.sleep(0)
        wait_until(lambda: not any(slot._answers for slot in self.executor.slots))
        self.ahead += 7200.0
        asyncio.get_running_loop().time = self.time  # type: ignore[method-assign]
        session.said(Reply.of_text(""))
        return Reply.of_text(ADD.format(said) if said < 3 else ANSWER)

    def time(self) -> float:
        return time.monotonic() + self.ahead


def test_time_limit_ignores_how_long_the_event_loop_computes() -> None:
    executor = Noting()
    collector = Collector(toy.make, Computing(executor), executor=executor)
    (group,) = collector.groups([0], 3)
    assert [episode.failure for episode in group] == [None] * 3
    collector.close()
