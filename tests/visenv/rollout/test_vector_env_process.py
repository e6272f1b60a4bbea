"""Tests the pool with workers in processes: rebuilt from JSON, replaced when hanging or dead."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.environments import few
from tests.waiting import LIMIT
from visenv.errors import ConfigurationError
from visenv.rollout import EpisodePool
from visenv.testing import toy
from visenv.types import Aborted, Image, Sample

ADD = "<tool>\nname: add\namount: 3\n</tool>"
TROUBLE = "<tool>\nname: trouble\nkind: {}\n</tool>"


def make(count: int = 2, **options: Any) -> EpisodePool:
    options = {"workers": "process", "trouble": True, **options}
    pool = gym.make_vec(toy.register(), num_envs=count, **options)
    assert isinstance(pool, EpisodePool)
    return pool


@pytest.fixture(scope="module")
def pool() -> Iterator[EpisodePool]:
    before = {*multiprocessing.active_children()}  # of other files
    made = make()
    yield made
    made.close(grace=LIMIT)
    assert {*multiprocessing.active_children()} <= before, "close() leaves no process"


def restart(pool: EpisodePool) -> None:
    """Reset both environments to the same episode, and make one call in the neighbor."""
    pool.reset(seed=[7, 7])
    pool.step_at({1: ADD})


def neighbor_is_well(pool: EpisodePool) -> bool:
    return "total 6" in pool.step_at({1: ADD})[1].observation["text"]


def test_episodes_are_those_of_this_process(pool: EpisodePool) -> None:
    observation, infos = pool.reset(seed=[7, 7])
    env = toy.make(trouble=True)
    expected, info = env.reset(seed=7)
    assert observation["text"] == (expected["text"],) * 2
    assert infos["step"][1] == info["step"]
    here, there = env.step(ADD), pool.step_at({0: ADD})[0]
    assert tuple(there) == here


def test_images_cross_the_pipe(pool: EpisodePool) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    sample = Sample("s", "q", (Image.from_pixels(noise),))
    observation, infos = pool.reset(options={"sample": sample})
    assert np.array_equal(observation["images"][0][0], noise)
    assert infos["step"][0].messages[0].images == sample.images


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["error", "service", "exit"])
def test_failure_stays_with_its_environment(pool: EpisodePool, kind: str) -> None:
    reasons = {
        "error": ("RuntimeError", "a bug in a tool"),
        "service": ("search", "the server is down"),
        "exit": ("worker", "the process ended with exit code 3."),
    }
    restart(pool)
    failed = pool.step_at({0: TROUBLE.format(kind)})[0]
    boundary, reason = reasons[kind]
    assert (failed.reward, failed.terminated, failed.truncated) == (0.0, False, True)
    assert failed.info["aborted"] == f"{boundary}: {reason}"
    assert failed.info["step"].events[-1] == Aborted(0, boundary, reason)
    assert neighbor_is_well(pool)
    pool.reset_at([0], 7)
    assert "total 3" in pool.step_at({0: ADD})[0].observation["text"]


@pytest.mark.slow
def test_killed_child_is_noticed_in_the_middle_of_a_call(pool: EpisodePool) -> None:
    restart(pool)
    hung = pool._worker_group._workers[0]._host._process  # type: ignore[attr-defined]
    pool.submit({0: TROUBLE.format("wait")})
    os.kill(hung.pid, signal.SIGKILL)
    failed = pool.ready()[0]
    assert failed.info["aborted"] == "worker: the process ended with exit code -9."
    assert neighbor_is_well(pool)
    assert not pool.reset_at([0], 7)[0].over
    assert hung not in multiprocessing.active_children()


@pytest.mark.slow
def test_child_killed_between_calls_is_noticed_by_the_next(pool: EpisodePool) -> None:
    restart(pool)
    idle = pool._worker_group._workers[0]._host._process  # type: ignore[attr-defined]
    os.kill(idle.pid, signal.SIGKILL)
    idle.join()
    assert pool.step_at({0: ADD})[0].info["aborted"].endswith("exit code -9.")
    assert neighbor_is_well(pool)


@pytest.mark.slow
def test_hanging_child_is_killed(pool: EpisodePool) -> None:
    restart(pool)
    old = pool._worker_group._workers[0]
    hung = old._host._process  # type: ignore[attr-defined]
    pool.timeout = 0.05  # only for the call that hangs
    pool.submit({0: TROUBLE.format("wait")})
    pool.timeout = None
    assert pool.ready()[0].info["aborted"] == "timeout: no reply within 0.05 s."
    assert neighbor_is_well(pool)
    assert not pool.reset_at([0], 7)[0].over
    old.join(LIMIT)
    assert hung not in multiprocessing.active_children()


@pytest.mark.slow
def test_exit_code_that_another_thread_collects_is_awaited(
    pool: EpisodePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart(pool)
    killed = pool._worker_group._workers[0]._host._process  # type: ignore[attr-defined]
    poll, calls = killed._popen.poll, itertools.count()

    def late(flag: int = os.WNOHANG) -> Any:
        # Another thread has collected the child, and stores the exit code after a few calls.
        return None if next(calls) < 5 else poll(flag)

    monkeypatch.setattr(killed._popen, "poll", late)
    os.kill(killed.pid, signal.SIGKILL)
    assert pool.step_at({0: ADD})[0].info["aborted"].endswith("exit code -9.")
    assert neighbor_is_well(pool)


def test_value_that_cannot_cross_the_pipe_fails_that_call(pool: EpisodePool) -> None:
    restart(pool)
    started = pool.reset_at([0], options={"sample": lambda: None})
    assert started[0].truncated
    assert "local object" in started[0].info["aborted"].lower()
    assert neighbor_is_well(pool)


@pytest.mark.slow
def test_close_ends_a_child_that_hangs() -> None:
    pool = make(1)
    pool.reset(seed=0)
    child = pool._worker_group._workers[0]._host._process  # type: ignore[attr-defined]
    pool.submit({0: TROUBLE.format("wait")})
    pool.close()
    assert child not in multiprocessing.active_children()


def test_options_must_be_json() -> None:
    with pytest.raises(ConfigurationError, match="Use workers='thread'"):
        make(1, turns=object())


@pytest.mark.slow
def test_error_in_making_a_child_is_reported() -> None:
    with pytest.raises(ConfigurationError, match="at least 1 turn"):
        make(1, turns=0)


MANY = """
import multiprocessing
import gymnasium as gym
from visenv.testing import toy

if __name__ == "__main__":
    pool = gym.make_vec(toy.register(), num_envs={count}, workers="process")
    pool.reset(seed=0)
    pool.close(grace={grace})
    print(len(multiprocessing.active_children()), "processes left")
"""


@pytest.mark.slow
@pytest.mark.parametrize("grace", few([0.0, LIMIT], 1))
def test_close_ends_many_children_quietly(grace: float, tmp_path: Path) -> None:
    program = tmp_path / "many.py"
    program.write_text(MANY.format(count=6, grace=grace))
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0 processes left\n"


@pytest.mark.slow
def test_close_kills_children_that_hang_after_the_grace_period() -> None:
    pool = make(3)
    pool.reset(seed=0)
    children = [
        worker._host._process  # type: ignore[attr-defined]
        for worker in pool._worker_group._workers
    ]
    pool.call("set_wrapper_attr", "close", partial(time.sleep, 3600))
    pool.close(grace=0.2)
    assert not set(children) & set(multiprocessing.active_children())
