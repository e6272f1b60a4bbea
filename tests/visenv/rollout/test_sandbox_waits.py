"""Tests that the rollout measures the time that environments wait for a sandbox."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from typing_extensions import override

from tests.waiting import LIMIT, wait_until
from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import ServiceError
from visenv.grammar import KeyValueGrammar
from visenv.policies.oracle import OraclePolicy
from visenv.rollout import Collector, Executor, InlineExecutor, ProcessExecutor, ThreadExecutor
from visenv.sandbox import Execution, Program, Sandbox
from visenv.sandbox.queue import sandbox_waits
from visenv.testing import toy
from visenv.tools import Store, Tool, ToolResult
from visenv.types import Episode

HELD = 0.1
"""Seconds for which another thread keeps the only worker while a tool waits for it."""


class Quick:
    """Runs programs in no time."""

    def start(self) -> None:
        return

    def run(self, program: Program) -> Execution:
        return Execution("ok")

    def close(self) -> None:
        return


def held(sandbox: Sandbox, wait: Callable[[], object]) -> None:
    """Take the only worker; when another thread begins to wait for it, call `wait`, and release it.

    The calls are made in a new thread.
    """
    taken = threading.Event()

    def hold() -> None:
        with sandbox._queue.worker("somebody else"):
            taken.set()
            wait_until(lambda: sandbox._queue._waiting)
            wait()

    threading.Thread(target=hold).start()
    taken.wait(LIMIT)


class Runs(Tool[toy.AddArguments]):
    """Runs a program while another thread has the only worker.

    Args:
        seconds: How long the other thread keeps the worker; infinity keeps it until the end.
        wait_seconds: Longest wait for a worker.
    """

    name = "add"
    description = "Runs a program."
    arguments = toy.AddArguments

    def __init__(self, seconds: float, wait_seconds: float = LIMIT) -> None:
        self.sandbox = Sandbox(Quick(), workers=1, wait_seconds=wait_seconds)
        self.seconds = seconds
        self.closed = threading.Event()

    def hold(self) -> None:
        if self.seconds:
            is_endless = self.seconds == math.inf
            held(
                self.sandbox, self.closed.wait if is_endless else partial(time.sleep, self.seconds)
            )

    @override
    def close(self) -> None:
        self.closed.set()

    @override
    def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        self.hold()
        self.sandbox.run("1")
        return ToolResult(("ran",), {"total": 0})


class RunsLater(Runs):
    """Runs the program in a coroutine, on the event loop of another thread."""

    @override
    async def call(  # type: ignore[override]
        self, arguments: toy.AddArguments, store: Store
    ) -> ToolResult:
        self.hold()
        await self.sandbox.run_async("1")
        return ToolResult(("ran",), {"total": 0})


def with_tool(tool: Runs) -> VisEnv:
    return toy.Adder(
        source=toy.Sums(), grammar=KeyValueGrammar(), tools=[tool], limits=EpisodeLimits(turns=4)
    )


def played(
    tool: type[Runs], seconds: float, executor: Executor | None = None, wait_seconds: float = LIMIT
) -> tuple[Episode, dict[str, float]]:
    """Return an episode of two tool calls and an answer, and the measurements of the rollout."""
    collector = Collector(
        lambda: with_tool(tool(seconds, wait_seconds)), OraclePolicy(), executor=executor
    )
    try:
        ((episode,),) = collector.groups([0])
        return episode, collector.stats.take()
    finally:
        collector.close()


@pytest.mark.slow
@pytest.mark.parametrize("tool", [Runs, RunsLater])
@pytest.mark.parametrize("kind", [InlineExecutor, ThreadExecutor, ProcessExecutor])
def test_rollout_stats_contain_the_wait_for_a_sandbox(
    tool: type[Runs], kind: type[Executor]
) -> None:
    episode, measured = played(tool, HELD, kind())
    assert episode.failure is None
    assert 2 * HELD <= measured["sandbox_wait_seconds"] <= measured["env_seconds"]  # for two calls


def test_wait_in_vain_is_measured_too() -> None:
    episode, measured = played(Runs, math.inf, wait_seconds=HELD)
    assert episode.failure is not None
    assert episode.failure.name == "sandbox"
    assert HELD <= measured["sandbox_wait_seconds"] <= measured["env_seconds"]


def test_episodes_do_not_differ_by_what_was_waited() -> None:
    slow, measured = played(Runs, HELD)
    quick, _ = played(Runs, 0.0)
    assert slow == quick
    assert measured["sandbox_wait_seconds"] >= 2 * HELD


def test_waits_belong_to_the_innermost_block_around_them() -> None:
    sandbox = Sandbox(Quick(), workers=1, wait_seconds=0.05)
    sandbox.run("outside of any block")
    with sandbox_waits() as outer:
        sandbox.run("1")
        with sandbox_waits() as inner:
            sandbox.run("2")
            released = threading.Event()
            held(sandbox, released.wait)
            with pytest.raises(ServiceError, match="no worker was free"):
                sandbox.run("3")
            released.set()
    assert (len(outer), len(inner)) == (1, 2)
    assert inner[1] >= 0.05
