"""Tests demonstrations: real expert runs, in the layouts of LIBERO and of LeRobot."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.libero.datasets.demonstrations import (
    chunks,
    read_hdf5,
    read_lerobot,
    replay,
    without_no_ops,
)
from visenv.envs.libero.simulator.expert import decode
from visenv.errors import DataError
from visenv.testing.record import played
from visenv.types import Episode, all_images

BOWL: dict[str, Any] = {"data": "libero_goal", "tasks": [6], "states": 1}
libero = pytest.mark.component("libero", "robosuite", "mujoco", "osmesa")


def test_actions_that_do_nothing_are_left_out() -> None:
    still, grip, move = [0.0] * 6 + [-1.0], [0.0] * 6 + [1.0], [0.5] + [0.0] * 5 + [1.0]
    small = [9e-5] + [0.0] * 5 + [1.0]
    # For the first action, only its norm counts; for later ones, also a change of the gripper.
    assert without_no_ops([still, grip, move, small, move]) == [move, move]
    assert without_no_ops([move, still, still, grip]) == [move, still, grip]


def test_chunks_hold_at_most_16_rows() -> None:
    texts = chunks([[0.0] * 6 + [1.0]] * 33)
    assert [len(json.loads(text)["actions"]) for text in texts] == [16, 16, 1]


@pytest.fixture(scope="module")
def env() -> Iterator[gym.Env[Any, Any]]:
    made = gym.make("visenv/Libero-v0", **BOWL)
    yield made
    made.close()


@pytest.fixture(scope="module")
def expert(env: gym.Env[Any, Any]) -> tuple[Episode, list[list[float]]]:
    """Return an episode of the expert and its actions."""
    episode = played(env, "oracle", seed=0)
    rows = [row for turn in episode.turns for row in json.loads(turn.text)["actions"]]
    return episode, [decode(row) for row in rows]


@libero
@pytest.mark.timeout(600)
@pytest.mark.soak
def test_hdf5_is_replayed_and_failures_are_dropped(
    env: gym.Env[Any, Any],
    expert: tuple[Episode, list[list[float]]],
    tmp_path: Path,
    simulator_interpreter: str,
) -> None:
    episode, actions = expert
    file = tmp_path / "put_the_cream_cheese_in_the_bowl_demo.hdf5"
    write = """
import json, sys, h5py, numpy, torch
actions, path = json.loads(sys.stdin.read())
from importlib.util import find_spec
root = list(find_spec("libero").submodule_search_locations)[0]
name = "libero_goal/put_the_cream_cheese_in_the_bowl.pruned_init"
state = torch.load(f"{root}/libero/init_files/{name}", weights_only=False)[0]
with h5py.File(path, "w") as file:
    for number, count in ((0, len(actions)), (1, 20), (2, len(actions))):
        group = file.create_group(f"data/demo_{number}")
        group["actions"] = numpy.array(actions[:count])[:, : 7 if number < 2 else 5]
        group["states"] = numpy.tile(state, (count, 1))
"""
    # The expert stands still while its fingers close, but the hand of a person never does. Such a
    # small move is not a no-op, and is written as the same bin.
    moving = [row if any(row[:6]) else [2e-4, *row[1:]] for row in actions]
    told = json.dumps([moving, str(file)])
    subprocess.run([simulator_interpreter, "-c", write], input=told, text=True, check=True)
    env.reset(seed=0)
    session = env.unwrapped.act.session  # type: ignore[attr-defined]
    demonstrations, problems = read_hdf5(file, session)
    assert [each.number for each in demonstrations] == [0, 1]
    (problem,) = problems
    assert "demo_2: actions must be [steps, 7]" in problem
    whole, cut = (replay(env, "libero_goal", 6, each) for each in demonstrations)
    assert cut is None
    assert whole is not None
    assert whole.reward == 1.0
    assert [turn.text for turn in whole.turns] == [turn.text for turn in episode.turns]
    assert {image.size for image in all_images(whole.turns[1].messages)} == {(224, 224)}

    file.write_bytes(file.read_bytes()[:2000])
    demonstrations, problems = read_hdf5(file, session)
    assert demonstrations == []
    assert str(file) in problems[0]


def png(level: int) -> dict[str, Any]:
    written = io.BytesIO()
    PIL.Image.fromarray(np.full((256, 256, 3), level, np.uint8)).save(written, "png")
    return {"bytes": written.getvalue(), "path": None}


def lerobot(folder: Path, rows: list[dict[str, Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "meta").mkdir(parents=True)
    (folder / "data/chunk-000").mkdir(parents=True)
    task = {"task_index": 3, "task": "put the cream cheese in the bowl"}
    (folder / "meta/tasks.jsonl").write_text(json.dumps(task) + "\n")
    pq.write_table(pa.Table.from_pylist(rows), folder / "data/chunk-000/episode_000000.parquet")
    return folder


@pytest.mark.component("pyarrow")
def test_lerobot_frames_are_resized_as_stored(tmp_path: Path) -> None:
    rows = [
        {
            "observation.images.image": png(number),
            "observation.images.wrist_image": png(100 + number),
            "action": [0.1] * 6 + [1.0] if number else [0.0] * 6 + [-1.0],
            "episode_index": 5,
            "task_index": 3,
        }
        for number in range(19)
    ]
    (episode,) = read_lerobot(lerobot(tmp_path / "set", rows), "libero_goal")
    # The first action is a no-op, so that 18 remain, in chunks of 16 and 2.
    assert [len(json.loads(turn.text)["actions"]) for turn in episode.turns] == [16, 2]
    levels = [
        [int(image.pixels[0, 0, 0]) for image in all_images(turn.messages)]
        for turn in episode.turns
    ]
    assert levels == [[1, 101], [17, 117]]
    assert {image.size for image in all_images(episode.turns[0].messages)} == {(224, 224)}
    assert (episode.sample_id, episode.reward) == ("libero_goal/6/lerobot_5", 1.0)


@pytest.mark.component("pyarrow")
def test_truncated_parquet_file_is_named(tmp_path: Path) -> None:
    row = {
        "observation.images.image": png(1),
        "observation.images.wrist_image": png(2),
        "action": [0.1] * 7,
        "episode_index": 0,
        "task_index": 3,
    }
    folder = lerobot(tmp_path / "set", [row])
    file = folder / "data/chunk-000/episode_000000.parquet"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match=r"episode_000000\.parquet contains no episode"):
        list(read_lerobot(folder, "libero_goal"))
