"""Tests Libero with LIBERO's simulator and assets: exact resets, both action spaces, failures."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest
from gymnasium.utils.env_checker import check_env

import visenv  # noqa: F401 - registers the environments
from tests.environments import few
from visenv.data.video_file import open_video
from visenv.envs.libero import Libero, NativeActions
from visenv.envs.libero.datasets.tasks import language, task_names
from visenv.envs.libero.presets import SUITES
from visenv.episodes import read_episodes, write_episodes
from visenv.errors import ConfigurationError
from visenv.evaluation.controls import NoTool
from visenv.simulators.host import ChildHost
from visenv.simulators.pool import SimulatorPool
from visenv.testing.record import facts, played

pytestmark = [
    pytest.mark.component("libero", "robosuite", "mujoco", "osmesa"),
    pytest.mark.timeout(600),
]

BOWL: dict[str, Any] = {"data": "libero_goal", "tasks": [6], "states": 3, "preset": "tiny"}
STILL = json.dumps({"actions": [[127] * 6 + [0]]})
CHUNK = json.dumps({"actions": [[200, 60, 20, 127, 127, 160, 1]] * 5})


@pytest.fixture(scope="module")
def env() -> Iterator[gym.Env[Any, Any]]:
    made = gym.make("visenv/Libero-v0", **BOWL)
    yield made
    made.close()


def base_of(env: gym.Env[Any, Any]) -> Libero:
    base = env.unwrapped
    assert isinstance(base, Libero)
    return base


def host_of(env: gym.Env[Any, Any]) -> ChildHost:
    host = base_of(env).act.session.host
    assert isinstance(host, ChildHost)
    return host


LIMITS = dict(zip(SUITES, (220, 280, 300, 400, 520), strict=True))


@pytest.mark.parametrize("suite", few(SUITES, 1))
def test_task_of_each_suite_starts_with_its_language_and_limit(suite: str) -> None:
    env = gym.make("visenv/Libero-v0", data=suite, tasks=[1], states=1)
    observation, _ = env.reset(seed=0)
    assert [image.shape for image in observation["images"]] == [(224, 224, 3)] * 2
    assert all(image.std() > 10 for image in observation["images"])
    assert f"Task: {language(task_names(suite)[1])}\n" in observation["text"]
    assert base_of(env).limits.env_steps == LIMITS[suite]
    env.step(STILL)
    env.close()


def test_list_of_tasks_is_that_of_the_package(env: gym.Env[Any, Any]) -> None:
    env.reset(seed=0)
    for suite in SUITES:
        listed = host_of(env).act({"tasks": suite}).facts["tasks"]
        assert [name for name, _, _ in listed] == list(task_names(suite))
        assert [words for _, words, _ in listed] == [language(name) for name, _, _ in listed]
        assert {states for _, _, states in listed} == {50}


def test_reset_equals_that_of_a_fresh_simulator_to_the_bit(env: gym.Env[Any, Any]) -> None:
    env.reset(seed=0, options={"index": 1})
    env.step(CHUNK)
    pool = SimulatorPool()
    act = base_of(env).act
    try:
        env.reset(seed=0, options={"index": 2})
        env.step(CHUNK)
        task = dict(act.session._task)
        fresh = pool.borrow(act.session.spec, task)
        start = fresh.reset(task, frames=act._request)
        rows = base_of(env).log.tool_calls[-1].detail["actions"]
        end = fresh.act({"actions": rows}, frames=act._request, snapshot=True)
        assert end.snapshot == host_of(env).snapshot()
        assert end.facts["state"] == act.facts["state"]
        assert all(np.any(start.frames[name] != end.frames[name]) for name in end.frames)
        shown = env.step(STILL)[0]["images"]
        again = fresh.act({"actions": [[0.0] * 6 + [-1.0]]}, frames=act._request)
        for image, frame in zip(shown, again.frames.values(), strict=True):
            assert np.array_equal(image, frame)
        pool.give_back(fresh)
    finally:
        pool.close()


@pytest.mark.soak  # `make test` pickles House in mid-episode
def test_pickle_in_mid_episode_continues_bitwise(env: gym.Env[Any, Any]) -> None:
    env.reset(seed=0, options={"index": 0})
    env.step(CHUNK)
    copied = pickle.loads(pickle.dumps(env))
    assert facts(env.step(CHUNK)) == facts(copied.step(CHUNK))
    copied.close()


def test_expert_solves_the_task_by_text(env: gym.Env[Any, Any]) -> None:
    episode = played(env, "oracle", seed=0)
    assert (episode.status, episode.reward) == ("terminated", 1.0)
    assert episode.metrics["goal_share"] == 1.0
    rows = [row for turn in episode.turns for row in json.loads(turn.text)["actions"]]
    assert episode.metrics["env_steps"] == len(rows) < 150
    assert all(0 <= value <= 254 for row in rows for value in row)


@pytest.mark.soak
def test_reward_outcome_equals_the_success(env: gym.Env[Any, Any]) -> None:
    outcome = gym.make("visenv/Libero-v0", **BOWL, reward="outcome")
    paid, bare = (played(each, "oracle", seed=0) for each in (env, outcome))
    outcome.close()
    assert (paid.reward, dict(paid.terms)) == (bare.reward, {"success": 1.0})
    assert not bare.terms


def test_no_tool_control_shows_the_first_frames_and_takes_one_turn(env: gym.Env[Any, Any]) -> None:
    first = env.reset(seed=0, options={"index": 0})[0]["images"]
    control = NoTool(gym.make("visenv/Libero-v0", **BOWL))
    shown = control.reset(seed=0, options={"index": 0})[0]["images"]
    assert all(np.array_equal(one, other) for one, other in zip(first, shown, strict=True))
    _, reward, terminated, truncated, _ = control.step(CHUNK)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert not any(call.ok for call in base_of(control).log.tool_calls)
    control.close()


def test_native_actions_at_bin_centers_give_the_same_states_as_text(
    env: gym.Env[Any, Any],
) -> None:
    native = NativeActions(gym.make("visenv/Libero-v0", **BOWL, actions="native"))
    rows = np.random.default_rng(0).integers(0, 255, (4, 7))
    rows[:, 6] = [0, 1, 1, 0]
    env.reset(seed=0, options={"index": 0})
    native.reset(seed=0, options={"index": 0})
    for row in rows.tolist():
        shown = env.step(json.dumps({"actions": [row]}))[0]
        action = np.array([(each - 127) / 127 for each in row[:6]] + [2.0 * row[6] - 1])
        seen = native.step(action)[0]
        assert seen["state"].tolist() == base_of(env).act.facts["state"]
        assert np.array_equal(seen["agentview"], shown["images"][0])
    saved = native.unwrapped.log.tool_calls[-1].detail["actions"]  # type: ignore[attr-defined]
    assert saved == [action.tolist()]
    native.close()


def test_native_actions_pass_the_checker_of_gymnasium() -> None:
    native = NativeActions(gym.make("visenv/Libero-v0", **BOWL, actions="native").unwrapped)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*different from the unwrapped version")
        check_env(native, skip_render_check=True)
    for wrong in (np.full(7, np.nan), np.zeros(6), np.zeros((0, 7)), np.zeros((521, 7)), "left"):
        with pytest.raises(ValueError, match=r"7 numbers|could not convert"):
            native.step(wrong)
    native.close()
    with pytest.raises(ConfigurationError, match="actions='native'"):
        NativeActions(gym.make("visenv/Libero-v0", **BOWL))


def test_chunk_of_native_actions_is_clipped_and_equals_single_actions(
    env: gym.Env[Any, Any],
) -> None:
    native = NativeActions(gym.make("visenv/Libero-v0", **BOWL, actions="native", record="turns"))
    rows = np.random.default_rng(1).uniform(-1, 1, (20, 7))
    rows[3], rows[4, 6], rows[5, 2] = 1.0000001, -7.5, np.inf
    native.reset(seed=0, options={"index": 0})
    for row in rows:
        single = native.step(row)[0]
    assert native.unwrapped.env_steps == 20  # type: ignore[attr-defined]
    renders = count_of_frames(native)
    chunk = native.reset(seed=0, options={"index": 0})[0]
    chunk, _, _, _, info = native.step(rows.astype(np.float64))
    assert len(info["step"].messages[0].images) == 2
    assert (renders, count_of_frames(native)) == (21, 2)
    for name in ("agentview", "wrist", "state"):
        assert np.array_equal(chunk[name], single[name])
    saved = native.unwrapped.log.tool_calls[-1].detail["actions"]  # type: ignore[attr-defined]
    assert np.array_equal(saved, np.clip(rows, -1, 1))
    # robosuite clips, too: numbers beyond 1 give the states of 1.
    host = base_of(native).act.session.host
    assert host is not None
    base_of(native).act.session.reset(dict(base_of(native).act.session._task))
    finite = np.where(np.isinf(rows), 1e9, rows)
    beyond = host.act({"actions": finite.tolist()}).facts["state"]
    assert beyond == base_of(native).act.facts["state"] == single["state"].tolist()
    native.close()


def count_of_frames(native: NativeActions) -> int:
    return len(native._film)


STILL_ROW = np.array([0.0] * 6 + [-1.0])


def test_native_actions_end_by_environment_steps_and_not_by_turns() -> None:
    options = {**BOWL, "states": 1, "actions": "native", "env_steps": 60}
    native = NativeActions(gym.make("visenv/Libero-v0", **options))
    native.reset(seed=0)
    assert base_of(native).limits.turns == 70  # the preset has 40; 10 turns may be malformed
    native.step(STILL_ROW)
    assert native.step(np.tile(STILL_ROW, (58, 1)))[2:4] == (False, False)
    _, _, terminated, truncated, info = native.step(np.tile(STILL_ROW, (50, 1)))
    assert (terminated, truncated, info["truncated_by"]) == (False, True, "env steps")
    assert base_of(native).env_steps == 60
    native.close()
    asked = NativeActions(gym.make("visenv/Libero-v0", **options, turns=2))
    assert base_of(asked).limits.turns == 2
    policy = gym.make("visenv/Libero-v0", preset="vla")
    assert base_of(policy).limits.turns == 530
    assert base_of(gym.make("visenv/Libero-v0")).limits.turns == 130


@pytest.mark.soak
def test_single_native_actions_reach_the_limit_of_libero_10() -> None:
    native = NativeActions(
        gym.make("visenv/Libero-v0", data="libero_10", tasks=[0], states=1, actions="native",
                 preset="tiny")
    )  # fmt: skip
    native.reset(seed=0)
    ends = [native.step(STILL_ROW)[2:4] for _ in range(520)]
    assert ends == [(False, False)] * 519 + [(False, True)]
    native.close()


def test_observation_has_the_keys_of_openpi_and_lerobot_only_with_rotated_frames(
    tmp_path: Path,
) -> None:
    options = {**BOWL, "states": 1, "actions": "native"}
    inner = gym.make("visenv/Libero-v0", **options, frames="rotated", record="actions")
    seen = [
        NativeActions(inner, keys=keys).reset(seed=0)[0] for keys in ("visenv", "openpi", "lerobot")
    ]
    assert [list(each) for each in seen] == [
        ["agentview", "wrist", "state", "instruction"],
        ["observation/image", "observation/wrist_image", "observation/state", "prompt"],
        ["observation.images.image", "observation.images.image2", "observation.state", "task"],
    ]
    for entries in zip(*(each.values() for each in seen), strict=True):
        assert all(np.array_equal(entries[0], entry) for entry in entries)
    assert seen[1]["prompt"] == "put the cream cheese in the bowl"
    native = NativeActions(inner, keys="openpi")
    assert native.observation_space.contains(native.reset(seed=0)[0])
    upright = gym.make("visenv/Libero-v0", **options)
    for keys in ("openpi", "lerobot"):
        with pytest.raises(ConfigurationError, match="frames='rotated'"):
            NativeActions(upright, keys=keys)
    with pytest.raises(ConfigurationError, match="record='turns'"):
        NativeActions(upright).save_video(tmp_path / "none.mp4")
    with pytest.raises(ConfigurationError, match="keys"):
        NativeActions(inner, keys="rlds")  # type: ignore[arg-type]

    last = native.step(np.tile([0.5, 0, -0.5, 0, 0, 0, -1], (12, 1)))[0]
    wanted = np.hstack([last["observation/image"], last["observation/wrist_image"]]).astype(int)
    assert wanted.shape == (96, 192, 3)
    frames, times = open_video(native.save_video(tmp_path / "episode.mp4"))
    assert times == pytest.approx([number / 20 for number in range(13)])
    assert np.abs(frames[-1].pixels - wanted).mean() < 6
    assert np.abs(frames[0].pixels - wanted).mean() > 6
    with PIL.Image.open(native.save_video(tmp_path / "episode.webp")) as film:
        assert film.n_frames == 13  # type: ignore[attr-defined]
        film.seek(12)
        assert np.abs(np.asarray(film.convert("RGB"), int) - wanted).mean() < 6
    native.close()


@pytest.mark.soak
def test_recorded_frames_are_saved_and_do_not_change_the_episode(
    env: gym.Env[Any, Any], tmp_path: Path
) -> None:
    recorded = gym.make("visenv/Libero-v0", **BOWL, record="actions")
    plain, filmed = (played(each, "oracle", seed=0) for each in (env, recorded))
    recorded.close()
    assert [turn.text for turn in plain.turns] == [turn.text for turn in filmed.turns]
    write_episodes(tmp_path / "episodes.jsonl", [filmed])
    (read,) = read_episodes(tmp_path / "episodes.jsonl")
    for turn in read.turns:
        lengths = [len(video.frames) for video in turn.hidden_frames]
        assert lengths == [len(json.loads(turn.text)["actions"])] * 2
    assert [frame.sha256 for frame in read.turns[0].hidden_frames[0].frames[-1:]] == [
        read.turns[1].messages[0].images[0].sha256
    ]


def test_killed_simulator_costs_one_episode(env: gym.Env[Any, Any]) -> None:
    env.reset(seed=0, options={"index": 0})
    os.kill(host_of(env).pid, signal.SIGKILL)
    _, reward, terminated, truncated, info = env.step(CHUNK)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["aborted"].startswith("simulator: its process ended with status -9")
    env.reset(seed=0, options={"index": 0})
    assert env.step(CHUNK)[4]["aborted"] == ""


def test_missing_assets_explain_how_to_install_them(tmp_path: Path) -> None:
    env = gym.make("visenv/Libero-v0", **BOWL, assets=str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"must be 585 files, found 0.*make simulators"):
        env.reset(seed=0)


@pytest.mark.soak
def test_libero_leaves_no_file_in_the_home_folder(
    simulator_interpreter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    env = gym.make("visenv/Libero-v0", **BOWL, host_limits={"idle_s": 60})
    env.reset(seed=0)
    env.close()
    assert [path.name for path in home.rglob("*") if "libero" in path.name.lower()] == []


OTHER_USER = """
import json, sys
import gymnasium as gym
import visenv

env = gym.make("visenv/Libero-v0", **json.loads(sys.argv[1]))
env.reset(seed=0, options={"index": 0})
_, _, _, truncated, info = env.step(sys.argv[2])
env.close()
print(json.dumps([truncated, info["aborted"], env.unwrapped.log.tool_calls[0].detail["goals"]]))
"""


@pytest.mark.soak
def test_user_without_a_home_folder_plays_at_the_same_time(
    env: gym.Env[Any, Any],
) -> None:
    script = Path(tempfile.mkdtemp()) / "other_user.py"
    script.write_text(OTHER_USER, encoding="utf-8")
    script.parent.chmod(0o755)
    as_user = Path(__file__).parents[2] / "visenv/sandbox/as_user.py"
    switch = [] if os.geteuid() else [str(as_user)]
    env.reset(seed=0, options={"index": 0})
    command = [sys.executable, *switch, str(script), json.dumps(BOWL), CHUNK]
    environment = {**os.environ, "HOME": "/nonexistent"}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, timeout=180
    )
    shutil.rmtree(script.parent)
    assert done.returncode == 0, done.stderr
    truncated, aborted, goals = json.loads(done.stdout.splitlines()[-1])
    assert (truncated, aborted) == (False, "")
    assert env.step(CHUNK)[4]["aborted"] == ""
    assert env.unwrapped.log.tool_calls[0].detail["goals"] == goals  # type: ignore[attr-defined]
