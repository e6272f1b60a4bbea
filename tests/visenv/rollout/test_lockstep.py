"""Tests that a deterministic collector forms the same batches, whenever environments answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from tests.algos.echo import Echo
from visenv.policy import Policy, Session
from visenv.rollout import Collector, EpisodeSpec
from visenv.rollout.adapter import EnvAdapter, MakeEnv
from visenv.rollout.collector import _warn_not_reproducible
from visenv.rollout.executor import EnvFailedError, InlineSlot
from visenv.types import Failure, Reply, Sampling, TurnRequest

_QUIET = 3


class Late:
    """Runs environments that answer after random numbers of turns of the event loop.

    Args:
        rng: The random numbers.
        failures: The share of calls that fail; the same calls fail for each `rng`.
        crowded: Whether the executor says that its resources are limited.
    """

    parallel = True

    def __init__(
        self, rng: np.random.Generator, failures: float = 0.0, crowded: bool = False
    ) -> None:
        self.crowded = crowded
        self._rng = rng
        self._failures = failures

    def slot(self, make_env: MakeEnv) -> Any:
        return _LateSlot(EnvAdapter(make_env()), self._rng, self._failures)

    def close(self) -> None: ...


class _LateSlot(InlineSlot):
    def __init__(self, adapter: EnvAdapter, rng: np.random.Generator, failures: float) -> None:
        super().__init__(adapter)
        self._rng = rng
        self._failures = failures
        self._seed = 0

    @override
    async def call(self, method: str, **arguments: Any) -> Any:
        for _ in range(self._rng.integers(6)):
            await asyncio.sleep(0)
        if method == "begin":
            self._seed = arguments["policy_seed"]
        chance = np.random.default_rng([self._seed, len(arguments.get("text", ""))]).random()
        if method in ("begin", "act") and chance < self._failures:
            self.usable = False
            raise EnvFailedError(Failure("environment", "RuntimeError", "a fault"))
        return await super().call(method, **arguments)


class Batching(Policy[Session]):
    """Replies to all turns that are requested at the same time, and records these batches.

    A reply depends on its batch, as the rounding of a model does.
    """

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self._waiting: list[tuple[int, asyncio.Future[str]]] = []

    @override
    def open(self, seed: int) -> Session:
        session: Any = Session()
        session.seed = seed
        return session  # type: ignore[no-any-return]

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        if not self._waiting:
            asyncio.get_running_loop().create_task(self._run())
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((session.seed, answer))  # type: ignore[attr-defined]
        return Reply.of_text(await answer)

    async def _run(self) -> None:
        quiet, before = 0, 0
        while quiet < _QUIET:
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == before else 0
            before = len(self._waiting)
        batch, self._waiting = self._waiting, []
        self.batches.append([seed for seed, _ in batch])
        for place, (_, answer) in enumerate(batch):
            answer.set_result("ABCD"[(len(batch) + place) % 4])


def _played(rng_seed: int, executor: Callable[..., Any], concurrency: int, **options: Any) -> Any:
    policy = Batching()
    collector = Collector(
        Echo,
        policy,
        concurrency=concurrency,
        executor=executor(np.random.default_rng(rng_seed), **options),
        deterministic=True,
        retries=1,
    )
    specs = [EpisodeSpec(group, group, member) for group in range(3) for member in range(3)]
    rewards = [(each.reward, each.status) for each in collector.episodes(specs)]
    collector.close()
    return policy.batches, rewards


@pytest.mark.parametrize("failures", [0.0, 0.2])
@settings(max_examples=30)
@given(rng_seed=st.integers(1, 1000), concurrency=st.integers(1, 10))
def test_batches_do_not_depend_on_the_time_of_results(
    failures: float, rng_seed: int, concurrency: int
) -> None:
    first = _played(0, Late, concurrency, failures=failures)
    assert _played(rng_seed, Late, concurrency, failures=failures) == first
    if failures:
        assert any(status == "aborted" for _, status in first[1])


def test_all_episodes_of_a_round_are_one_batch() -> None:
    batches, _ = _played(0, Late, 9)
    assert [len(batch) for batch in batches] == [9, 9]


def test_crowded_executor_is_announced_as_not_reproducible(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _warn_not_reproducible.cache_clear()
    first, second, _ = (_played(seed, Late, 9, crowded=True)[0] for seed in (0, 1, 2))
    assert caplog.text.count("not bitwise reproducible, because Late has no determin") == 1
    assert first != second
