"""Tests plain functions that are called while an event loop runs, as in a cell of Jupyter."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from tests.waiting import LIMIT, wait_until
from visenv import background
from visenv.evaluation.held_out import evaluate
from visenv.policies.oracle import OraclePolicy
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper
from visenv.rollout import Collector, Env
from visenv.testing import toy
from visenv.testing.record import played

T = TypeVar("T")


async def judge(context: RewardContext) -> float:
    await asyncio.sleep(0.01)
    return 1.0


def judged() -> Env:
    return RewardWrapper(toy.make().unwrapped, [RewardTerm("judge", 1.0, judge)])


def in_a_cell(call: Callable[[], T]) -> T:
    async def cell() -> T:
        return call()

    return asyncio.run(cell())


def test_evaluate_plays_inside_a_running_loop() -> None:
    def evaluated() -> list[float]:
        collector = Collector(judged, OraclePolicy())
        return [episode.reward for episode in evaluate(collector, judged(), 3)]

    assert in_a_cell(evaluated) == [1.0] * 3


def test_groups_are_the_same_inside_a_running_loop() -> None:
    def groups() -> object:
        return Collector(judged, OraclePolicy()).groups(range(3), 2)

    assert in_a_cell(groups) == groups()


def test_plain_step_computes_its_asynchronous_terms_inside_a_running_loop() -> None:
    def paid() -> float:
        env = judged()
        env.reset(seed=0)
        return float(env.step("<think>so</think><answer>1</answer>")[1])

    assert in_a_cell(paid) == 1.0


def test_checks_of_an_environment_play_inside_a_running_loop() -> None:
    assert in_a_cell(lambda: played(toy.make(), "oracle", 0)).status == "terminated"


def test_run_here_returns_and_raises_as_asyncio_run_does() -> None:
    async def fails() -> None:
        raise KeyError("mine")

    assert in_a_cell(lambda: background.run_here(asyncio.sleep(0, "value"))) == "value"
    with pytest.raises(KeyError, match="mine"):
        in_a_cell(lambda: background.run_here(fails()))


def test_run_here_leaves_no_thread() -> None:
    before = {*threading.enumerate()}
    in_a_cell(lambda: background.run_here(asyncio.sleep(0)))
    wait_until(lambda: {*threading.enumerate()} <= before)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT raise `KeyboardInterrupt`: processes in the background of a script ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_cancels_what_runs() -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.sleep(600)
        finally:
            ended.set()

    async def cell() -> None:
        background.run_here(long())

    # asyncio.run would catch the first interrupt; Jupyter's loop does not.
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    assert ended.wait(LIMIT)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("catches", [0, 2])
def test_interrupt_ends_a_call_that_blocks_the_loop(
    catches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_SECONDS_TO_CANCEL", 0.01)
    caught: list[BaseException] = []

    async def blocks() -> None:
        signal.raise_signal(signal.SIGINT)
        while True:
            try:
                time.sleep(LIMIT)  # noqa: ASYNC251 - it blocks the loop
            except KeyboardInterrupt as error:
                caught.append(error)
                if len(caught) > catches:
                    raise

    with pytest.raises(KeyboardInterrupt):
        background.run_here(blocks())
    assert len(caught) == catches + 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "visenv-cancel" not in {each.name for each in threading.enumerate()}


def test_ignored_or_handled_ctrl_c_stays_so_while_a_loop_runs() -> None:
    received: list[int] = []

    async def interrupted() -> str:
        signal.raise_signal(signal.SIGINT)
        return "ended"

    before = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, lambda number, _: received.append(number)):
            signal.signal(signal.SIGINT, handler)
            assert background.run_here(interrupted()) == "ended"
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert received == [signal.SIGINT]
