"""Where environments run makes no difference to what is played, and nothing is left of it."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv.env import Observation
from visenv.errors import PolicyError
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
from visenv.testing import toy
from visenv.testing.trouble import OPENED, REACHED
from visenv.types import Reply, Sampling, TurnRequest

ADD = "<tool>\nname: add\namount: {}\n</tool>"
ANSWER = "<answer>3</answer>"


class Drawing(Policy[Session]):
    """Adds numbers that its seed draws, after as many turns of the loop as the clock decides."""

    def open(self, seed: int) -> Session:
        session: Any = Session()
        session.rng = np.random.default_rng(seed)
        return session  # type: ignore[no-any-return]

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


def test_the_same_seeds_give_the_same_groups_wherever_environments_run() -> None:
    before, children = worker_threads(), set(multiprocessing.active_children())
    expected = groups_of(InlineExecutor())
    assert groups_of(InlineExecutor()) == expected
    assert groups_of(ThreadExecutor()) == expected
    assert groups_of(ProcessExecutor(), concurrency=2) == expected
    # Nothing is left when a collector is closed.
    assert worker_threads() <= before
    assert set(multiprocessing.active_children()) <= children


def worker_threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.startswith("visenv")}


def test_who_looks_into_the_environment_can_do_so_in_threads_and_not_in_processes() -> None:
    oracle = load("policy", "oracle")()
    collector = Collector(toy.make, oracle, executor=ThreadExecutor())
    (episode,) = collector.episodes([EpisodeSpec(3)])
    assert episode.reward == 1.0
    collector.close()
    collector = Collector(toy.make, oracle, executor=ProcessExecutor())
    with pytest.raises(PolicyError, match=r"got Elsewhere.*not in a pool of workers"):
        collector.episodes([EpisodeSpec(3)])
    collector.close()


class Waiting(Policy[Session]):
    """Waits for ever, and notes when it is told to stop."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.aborted = 0

    def open(self, seed: int) -> Session:
        return Session()

    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        raise AssertionError("unreachable")


def test_cancelling_an_episode_aborts_its_request_and_keeps_the_environment() -> None:
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


def test_cancelling_an_episode_leaves_a_call_behind() -> None:
    wait = "<tool>\nname: trouble\nkind: wait\ngate: cancelled\n</tool>"

    async def run() -> None:
        playing = asyncio.create_task(collector.play(EpisodeSpec(0)))
        await asyncio.to_thread(REACHED["cancelled"].wait, 60)
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
    OPENED["cancelled"].set()
    collector.close()
    assert not any(worker.alive for worker in executor._workers)


class Noting(ThreadExecutor):
    """Notes its seats."""

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.seats: list[Any] = []

    def seat(self, make_env: Any) -> Any:
        self.seats.append(super().seat(make_env))
        return self.seats[-1]


class Computing(Policy[Session]):
    """Blocks the event loop for longer than the time limit, as a model that runs on it does."""

    def __init__(self, executor: Noting) -> None:
        self.executor = executor

    def open(self, seed: int) -> Session:
        return Session()

    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        said = len(session.messages)
        await asyncio.sleep(0)
        while any(seat._answers for seat in self.executor.seats):
            time.sleep(0.01)  # noqa: ASYNC251 - until every environment has answered
        if not said:
            time.sleep(1.1)  # noqa: ASYNC251 - and the limit has passed
        session.said(Reply.of_text(""))
        return Reply.of_text(ADD.format(said) if said < 3 else ANSWER)


def test_a_loop_that_computes_makes_no_call_late() -> None:
    executor = Noting(timeout=1.0)
    collector = Collector(toy.make, Computing(executor), executor=executor)
    (group,) = collector.groups([0], 3)
    assert [episode.reason for episode in group] == [""] * 3
    collector.close()
