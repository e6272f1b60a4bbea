"""Tests the child process that renders houses if this process uses CUDA and OpenGL is EGL.

CUDA and EGL are replaced by flags of this process; the child renders with OSMesa.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from visenv.child_process.host import ChildProcess
from visenv.envs.embodied.world.render import HouseRenderer, apart
from visenv.envs.embodied.world.render.apart import RenderProcess, render_process
from visenv.envs.embodied.world.state import HouseState
from visenv.envs.embodied.world.tasks import TaskOptions, make_task
from visenv.errors import ServiceError
from visenv.simulators import opengl

pytestmark = pytest.mark.component("mujoco", "osmesa")

SIDE = 96


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Return flags for CUDA and the backend, which only the choice of the child sees.

    This process may have imported MuJoCo with its real backend.
    """
    flag = SimpleNamespace(value=True, backend="egl")
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: flag.value))
    monkeypatch.setitem(sys.modules, "torch", torch)

    def draws_apart() -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(opengl, "choose_backend", lambda: flag.backend)
            return opengl.draws_apart()

    monkeypatch.setattr("visenv.envs.embodied.world.render.renderer.draws_apart", draws_apart)
    yield flag
    render_process().close()


def looks(seed: int) -> list[HouseState]:
    house = make_task(seed, TaskOptions()).house
    states = [HouseState(house)]
    for name in [*house.items][:2]:
        states.append(states[-1].copy())
        states[-1].go_to(name)
    return states


def test_child_renders_the_same_frames_and_ids(cuda: SimpleNamespace) -> None:
    # More houses than the child keeps, so that one is sent twice.
    states = [state for seed in (0, 1, 2) for state in looks(seed)] * 2
    found = {}
    for value in (True, False):
        cuda.value = value
        found[value] = [
            (HouseRenderer(state.house).frame(state, SIDE, bool(number % 2)),
             *HouseRenderer(state.house).ids(state, SIDE))
            for number, state in enumerate(states)
        ]  # fmt: skip
    for (frame, ids, names), (frame_here, ids_here, names_here) in zip(
        *found.values(), strict=True
    ):
        assert np.array_equal(frame, frame_here)
        assert np.array_equal(ids, ids_here)
        assert (frame.dtype, ids.dtype, names) == (np.uint8, np.int32, names_here)


def test_house_that_the_child_no_longer_keeps_is_sent_again(
    cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "HOUSES", 1)
    process = RenderProcess()
    first, second = looks(0)[1], looks(1)[1]
    frames = [process.frame(state, SIDE, False) for state in (first, second, first)]
    process.close()
    assert np.array_equal(frames[0], frames[2])
    assert not np.array_equal(frames[0], frames[1])


def test_child_that_dies_fails_one_frame(
    cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = looks(0)[1]
    renderer = HouseRenderer(state.house)
    expected = renderer.frame(state, SIDE)
    os.kill(render_process().pid, signal.SIGSTOP)  # so that it cannot reply before it dies
    read_reply = ChildProcess._read_reply

    def killed(child: ChildProcess, deadline: float) -> Any:
        os.kill(child.pid, signal.SIGKILL)  # the request has been sent
        return read_reply(child, deadline)

    with monkeypatch.context() as patch:
        patch.setattr(ChildProcess, "_read_reply", killed)
        with pytest.raises(ServiceError, match="renderer of House"):
            renderer.frame(state, SIDE)
    assert np.array_equal(renderer.frame(state, SIDE), expected)


EPISODE = """
import json, sys
from types import SimpleNamespace
import gymnasium as gym
import visenv
import visenv.simulators.opengl as opengl

opengl.choose_backend = lambda: "egl"
sys.modules["torch"] = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True))
env = gym.make("visenv/House-v0", preset="tiny")
shown = env.reset(seed=0)[0]["images"]
image = shown[0]
from visenv.envs.embodied.world.render.apart import render_process
found = [image.shape, bool(image.std() > 5), "mujoco" in sys.modules, render_process().pid > 0]
print(json.dumps(found))
"""


def test_episode_in_a_process_with_cuda_never_loads_mujoco() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EPISODE], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[96, 96, 3], True, False, True]


def test_child_is_not_used_without_cuda_or_with_another_backend(
    cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> RenderProcess:
        raise AssertionError("a child was used")

    state = looks(0)[1]
    with monkeypatch.context() as patch:
        patch.setattr(apart, "render_process", refuse)
        with pytest.raises(AssertionError, match="a child was used"):
            HouseRenderer(state.house).frame(state, SIDE)
        cuda.value = False
        HouseRenderer(state.house).frame(state, SIDE)
        cuda.value = True
        cuda.backend = "osmesa"
        HouseRenderer(state.house).frame(state, SIDE)


def test_contexts_of_this_process_are_freed_when_it_begins_to_use_cuda(
    cuda: SimpleNamespace,
) -> None:
    from visenv.envs.embodied.world.render import renderer

    state = looks(0)[1]
    cuda.value = False
    here = HouseRenderer(state.house).frame(state, SIDE)
    thread = renderer._threads[os.getpid()]
    assert thread._gl is not None
    cuda.value = True
    assert np.array_equal(HouseRenderer(state.house).frame(state, SIDE), here)
    assert thread._gl is None
    cuda.value = False
    assert np.array_equal(HouseRenderer(state.house).frame(state, SIDE), here)
