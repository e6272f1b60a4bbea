"""Tests that after any sequence of calls each environment of a pool replies as it would alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from typing_extensions import override

from visenv.errors import EpisodeOverError
from visenv.rollout import EnvResult, EpisodePool, ResetRequest
from visenv.testing import toy

COUNT = 3
ERROR = "<tool>\nname: trouble\nkind: error\n</tool>"
TURNS = [
    "<tool>\nname: add\namount: 3\n</tool>",
    "<tool>\nname: add\namount: 40\n</tool>",
    "<answer>43</answer>",
    "hello",
    "<tool>\nname: trouble\nkind: service\n</tool>",
    ERROR,
]
places = st.integers(0, COUNT - 1)
seeds = st.integers(0, 2**32 - 1)


class Alone:
    """Models the expected behavior of a place in the pool: one environment without a pool."""

    def __init__(self) -> None:
        self.over = True
        self.env = toy.make(trouble=True)

    def answer(self, request: str | ResetRequest) -> tuple[Any, ...]:
        if isinstance(request, ResetRequest):
            observation, info = self.env.reset(seed=request.seed)
            self.over = False
            return observation, 0.0, False, False, info["step"]
        try:
            *values, info = self.env.step(request)
        except RuntimeError as error:
            self.over, self.env = True, toy.make(trouble=True)
            return {"text": "", "images": ()}, 0.0, False, True, f"RuntimeError: {error}"
        self.over = bool(values[2] or values[3])
        return (*values, info["step"])


def values(result: EnvResult) -> tuple[Any, ...]:
    broken = result.info["aborted"].startswith("RuntimeError")
    return (*result[:4], result.info["aborted"] if broken else result.info["step"])


class PoolMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        made = gym.make_vec(toy.register(), num_envs=COUNT, trouble=True)
        assert isinstance(made, EpisodePool)
        self.pool = made
        self.alone = [Alone() for _ in range(COUNT)]
        self.expected: dict[int, tuple[Any, ...]] = {}

    @rule(place=places, seed=seeds)
    def submit_reset(self, place: int, seed: int) -> None:
        self.submit(place, ResetRequest(seed))

    @rule(place=places, turn=st.sampled_from(TURNS))
    def submit_turn(self, place: int, turn: str) -> None:
        self.submit(place, turn)

    def submit(self, place: int, request: str | ResetRequest) -> None:
        if place in self.expected:
            return
        if isinstance(request, str) and self.alone[place].over:
            with pytest.raises(EpisodeOverError):
                self.pool.submit({place: request})
            return
        self.pool.submit({place: request})
        self.expected[place] = self.alone[place].answer(request)

    @rule(chosen=st.sets(places), seed=seeds)
    def reset_some_and_wait(self, chosen: set[int], seed: int) -> None:
        free = sorted(chosen - self.expected.keys())
        results = self.pool.reset_at(free, seed)
        assert {place: values(result) for place, result in results.items()} == {
            place: self.alone[place].answer(ResetRequest(seed)) for place in free
        }

    @rule(turn=st.sampled_from(TURNS))
    def step_whoever_can(self, turn: str) -> None:
        free = [p for p in range(COUNT) if p not in self.expected and not self.alone[p].over]
        results = self.pool.step_at(dict.fromkeys(free, turn))
        assert {place: values(result) for place, result in results.items()} == {
            place: self.alone[place].answer(turn) for place in free
        }

    @rule(wait=st.booleans())
    def take(self, wait: bool) -> None:
        for place, result in self.pool.ready(timeout=None if wait else 0).items():
            assert values(result) == self.expected.pop(place)

    @invariant()
    def nothing_is_invented(self) -> None:
        if hasattr(self, "pool"):
            assert self.pool._worker_group.busy <= self.expected.keys()

    @override
    def teardown(self) -> None:
        while self.expected:
            self.take(wait=True)
        self.pool.close()


TestPool = pytest.mark.slow(PoolMachine.TestCase)
TestPool.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
