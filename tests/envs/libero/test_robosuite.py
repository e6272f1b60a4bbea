"""Tests frames, states and demonstrations against robosuite's raw observations.

LIBERO's own environment plays the actions of one expert episode (`robosuite_frames`). Its
observations have their lowest row first. The published data sets store them rotated by 180°; the
tests write such data sets, in every layout.
"""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from tests.envs.libero.robosuite_frames import raw_observations
from visenv.envs.libero import NativeActions
from visenv.envs.libero.datasets.demonstrations import read_hdf5, read_lerobot, replay
from visenv.envs.libero.presets import PRESETS, LiberoPreset
from visenv.envs.libero.simulator.expert import decode
from visenv.errors import DataError
from visenv.testing.record import played
from visenv.types import Episode, all_images

pytestmark = [
    pytest.mark.component("libero", "robosuite", "mujoco", "osmesa"),
    pytest.mark.timeout(600),
]

BOWL: dict[str, Any] = {"data": "libero_goal", "tasks": [6], "states": 1, "preset": "tiny"}
TASK = "put the cream cheese in the bowl"
CAMERAS = ("agentview", "wrist")
ROTATED = LiberoPreset(frame_side=96, prompt="brief", frames="rotated")

ACTIONS = [[0.3, -0.2, 0.1, 0.0, 0.0, 0.2, -1.0]] * 8 + [[-0.2, 0.3, -0.1, 0.1, 0.0, 0.0, 1.0]] * 8

Frames = NDArray[np.uint8]


class Run(NamedTuple):
    """Holds an expert's episode, its actions, and robosuite's observations of the same actions."""

    episode: Episode
    actions: list[list[float]]
    raw: Mapping[str, Any]

    def rotated(self, camera: str) -> Frames:
        """Return robosuite's frames rotated by 180°, as data sets store them."""
        turned: Frames = self.raw[camera][:, ::-1, ::-1]
        return turned


@pytest.fixture(scope="module")
def envs() -> Iterator[dict[str, gym.Env[Any, Any]]]:
    made = {
        frames: gym.make("visenv/Libero-v0", **BOWL, frames=frames)
        for frames in ("upright", "rotated")
    }
    yield made
    for env in made.values():
        env.close()


@pytest.fixture(scope="module")
def run(
    envs: dict[str, gym.Env[Any, Any]],
    simulator_interpreter: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    episode = played(envs["upright"], "oracle", seed=0)
    rows = [row for turn in episode.turns for row in json.loads(turn.text)["actions"]]
    actions = [decode(row) for row in rows]
    folder = tmp_path_factory.mktemp("raw")
    raw = raw_observations(simulator_interpreter, "libero_goal", 6, 96, actions, folder)
    assert raw["language"] == TASK
    assert len(raw["agentview"]) == len(actions) + 1
    return Run(episode, actions, raw)


def shown(episode: Episode) -> list[list[Frames]]:
    """Return the frames of each turn, of both cameras."""
    return [[image.pixels for image in all_images(turn.messages)] for turn in episode.turns]


def same(episode: Episode, frames: Callable[[str], Frames]) -> bool:
    """Return whether each turn shows these frames, those before its first action."""
    return all(
        np.array_equal(picture, frames(camera)[16 * turn])
        for turn, pictures in enumerate(shown(episode))
        for camera, picture in zip(CAMERAS, pictures, strict=True)
    )


@pytest.mark.soak
def test_upright_frames_are_the_raw_observation_with_its_rows_reversed(run: Run) -> None:
    assert len(run.episode.turns) > 3
    assert same(run.episode, lambda camera: run.raw[camera][:, ::-1])


@pytest.fixture(scope="module")
def raw(simulator_interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Return robosuite's observations of `ACTIONS`."""
    folder = tmp_path_factory.mktemp("raw")
    return raw_observations(simulator_interpreter, "libero_goal", 6, 96, ACTIONS, folder)


ROTATIONS: list[dict[str, Any]] = [{"frames": "rotated"}, {"preset": "vla", "frame_side": 96}]


@pytest.mark.soak
@pytest.mark.parametrize("options", ROTATIONS)
def test_rotated_frames_are_the_raw_observation_turned_by_180_degrees(
    raw: Mapping[str, Any], options: dict[str, Any]
) -> None:
    env = NativeActions(gym.make("visenv/Libero-v0", **{**BOWL, **options}, actions="native"))
    start = env.reset(seed=0, options={"index": 0})[0]
    end = env.step(ACTIONS)[0]
    env.close()
    for place, seen in ((0, start), (len(ACTIONS), end)):
        for camera in CAMERAS:
            upside_down = raw[camera][place]
            assert np.array_equal(seen[camera], upside_down[::-1, ::-1])
            # What `step` of robosuite returns shows the poses 2 ms earlier.
            stepped = raw[f"stepped_{camera}"][place][::-1, ::-1].astype(int)
            other = upside_down[::-1].astype(int)  # not mirrored
            assert np.abs(seen[camera] - stepped).mean() < 8 < np.abs(seen[camera] - other).mean()
        assert seen["state"] == pytest.approx(raw["state"][place], abs=1e-12)
        assert seen["state"] == pytest.approx(raw["stepped_state"][place], abs=5e-3)


# ----------------------------------------------------------------------------------- demonstrations


def png(frame: Frames) -> dict[str, Any]:
    written = io.BytesIO()
    PIL.Image.fromarray(frame).save(written, "png")
    return {"bytes": written.getvalue(), "path": None}


def moving(actions: list[list[float]]) -> list[list[float]]:
    """Return the actions with a small move where the expert stands still.

    The hand of a person never stands still, and such a small move is written as the same bin.
    """
    return [row if any(row[:6]) else [2e-4, *row[1:]] for row in actions]


def write_set(
    folder: Path,
    run: Run,
    columns: tuple[str, str, str],
    *,
    version: str = "v3.0",
    videos: bool = False,
) -> Path:
    """Write a data set: an episode of another suite, the run, and the run without its first 16."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_new = version == "v3.0"
    tasks = ["turn on the radio", TASK]
    actions = moving(run.actions)
    spans = [(0, range(20)), (1, range(len(actions))), (1, range(16, len(actions)))]
    episodes, rows, films = [], [], dict[str, list[Frames]]()
    for number, (task, places) in enumerate(spans):
        pictures = dict(zip(columns[:2], CAMERAS, strict=True))
        start_s = len(next(iter(films.values()), [])) / 10
        episode: dict[str, Any] = {"episode_index": number, "tasks": [tasks[task]]}
        for column, camera in pictures.items():
            films.setdefault(column, []).extend(run.rotated(camera)[place] for place in places)
            episode |= {
                f"videos/{column}/chunk_index": 0,
                f"videos/{column}/file_index": 0,
                f"videos/{column}/from_timestamp": start_s,
            }
        episodes.append(episode)
        rows.append(
            [
                {
                    columns[2]: actions[place],
                    "timestamp": frame / 10,
                    "episode_index": number,
                    "task_index": task,
                    **{
                        column: png(run.rotated(camera)[place])
                        for column, camera in pictures.items()
                        if not videos
                    },
                }
                for frame, place in enumerate(places)
            ]
        )
    names = {name: {"dtype": "video" if videos else "image"} for name in columns[:2]}
    info = {"codebase_version": version, "fps": 10, "features": {**names, columns[2]: {}}}
    (folder / "data/chunk-000").mkdir(parents=True)
    (folder / "meta/episodes/chunk-000").mkdir(parents=True)
    (folder / "meta/info.json").write_text(json.dumps(info))
    if is_new:
        table = {"task_index": [0, 1], "__index_level_0__": tasks}
        pq.write_table(pa.table(table), folder / "meta/tasks.parquet")
        listed = pa.Table.from_pylist(episodes)
        pq.write_table(listed, folder / "meta/episodes/chunk-000/file-000.parquet")
        flat = pa.Table.from_pylist([row for each in rows for row in each])
        pq.write_table(flat, folder / "data/chunk-000/file-000.parquet")
    else:
        lines = [json.dumps({"task_index": n, "task": task}) for n, task in enumerate(tasks)]
        (folder / "meta/tasks.jsonl").write_text("\n".join(lines))
        for number, each in enumerate(rows):
            name = f"data/chunk-000/episode_{number:06d}.parquet"
            pq.write_table(pa.Table.from_pylist(each), folder / name)
    if videos:
        write_films(folder, films)
    return folder


def write_films(folder: Path, films: Mapping[str, list[Frames]]) -> None:
    import cv2

    for column, frames in films.items():
        path = folder / f"videos/{column}/chunk-000/file-000.mp4"
        path.parent.mkdir(parents=True)
        size = frames[0].shape[1::-1]
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 10, size)
        for frame in frames:
            writer.write(np.ascontiguousarray(frame[..., ::-1]))
        writer.release()


LEROBOT = ("observation.images.image", "observation.images.image2", "action")
LEROBOT_2 = ("observation.images.image", "observation.images.wrist_image", "action")
OPENPI = ("image", "wrist_image", "actions")


@pytest.mark.component("pyarrow")
@pytest.mark.parametrize(
    ("columns", "version"),
    [(LEROBOT, "v3.0"), (OPENPI, "v2.0"), (LEROBOT_2, "v2.1")],
    ids=["HuggingFaceVLA/libero", "physical-intelligence/libero", "version 2"],
)
@pytest.mark.soak
def test_stored_frames_are_those_of_the_environment_that_plays_the_actions(
    run: Run, tmp_path: Path, columns: tuple[str, str, str], version: str
) -> None:
    folder = write_set(tmp_path / "set", run, columns, version=version)
    whole, rest = read_lerobot(folder, "libero_goal", "tiny")
    assert [turn.text for turn in whole.turns] == [turn.text for turn in run.episode.turns]
    assert same(whole, lambda camera: run.raw[camera][:, ::-1])
    for stored, played_turn in zip(whole.turns, run.episode.turns, strict=True):
        texts = [[part for part in each.messages[0].parts if isinstance(part, str)]
                 for each in (stored, played_turn)]  # fmt: skip
        # The environment counts to the limit of the suite, as the reader does.
        assert texts[0] == texts[1]
        assert stored.messages[0].role == played_turn.messages[0].role
    assert [turn.text for turn in rest.turns] == [turn.text for turn in whole.turns[1:]]
    assert np.array_equal(shown(rest)[0][1], shown(whole)[1][1])
    turned, _ = read_lerobot(folder, "libero_goal", ROTATED)
    assert same(turned, run.rotated)


@pytest.mark.component("pyarrow")
@pytest.mark.soak
def test_frames_in_videos_are_those_of_the_environment_that_plays_the_actions(
    run: Run, tmp_path: Path
) -> None:
    folder = write_set(tmp_path / "set", run, LEROBOT, videos=True)
    for preset, expected in (
        ("tiny", lambda camera: run.raw[camera][:, ::-1]),
        (ROTATED, run.rotated),
    ):
        errors, mirrored = [], []
        whole, rest = read_lerobot(folder, "libero_goal", preset)
        for episode, skipped in ((whole, 0), (rest, 16)):
            for turn, pictures in enumerate(shown(episode)):
                for camera, picture in zip(CAMERAS, pictures, strict=True):
                    frame = expected(camera)[skipped + 16 * turn].astype(int)
                    errors.append(np.abs(frame - picture).mean())
                    mirrored.append(np.abs(frame[:, ::-1] - picture).mean())
        # The codec loses details. A mirrored frame differs more, also from a nearly symmetric one.
        assert max(errors) < 4
        assert np.mean(mirrored) > 30
        assert all(other > error for error, other in zip(errors, mirrored, strict=True))


@pytest.mark.component("pyarrow")
@pytest.mark.soak
def test_data_set_without_a_demonstration_of_the_suite_names_its_tasks(
    run: Run, tmp_path: Path
) -> None:
    folder = write_set(tmp_path / "set", run, OPENPI, version="v2.0")
    with pytest.raises(DataError, match=r"no demonstration of libero_object; .*radio"):
        list(read_lerobot(folder, "libero_object"))


WRITE_HDF5 = """
import json, sys, h5py, numpy
source, actions, path = json.loads(sys.stdin.read())
raw = numpy.load(source)
with h5py.File(path, "w") as file:
    group = file.create_group("data/demo_0")
    group["actions"] = numpy.array(actions)
    group["states"] = numpy.tile(raw["start"], (len(actions), 1))
    group["obs/agentview_rgb"] = raw["agentview"][:-1]
    group["obs/eye_in_hand_rgb"] = raw["wrist"][:-1]
"""


@pytest.mark.soak
def test_replay_of_hdf5_shows_the_frames_of_its_environment(
    run: Run, envs: dict[str, gym.Env[Any, Any]], tmp_path: Path, simulator_interpreter: str
) -> None:
    raw, file = tmp_path / "raw.npz", tmp_path / "demo.hdf5"
    np.savez(raw, **run.raw)
    request = json.dumps([str(raw), moving(run.actions), str(file)])
    subprocess.run([simulator_interpreter, "-c", WRITE_HDF5], input=request, text=True, check=True)
    for frames, expected in (
        ("upright", lambda camera: run.raw[camera][:, ::-1]),
        ("rotated", run.rotated),
    ):
        env = envs[frames]
        env.reset(seed=0)
        session = env.unwrapped.act.session  # type: ignore[attr-defined]
        (demonstration,), problems = read_hdf5(file, session)
        assert problems == []
        episode = replay(env, "libero_goal", 6, demonstration)
        assert episode is not None
        assert episode.reward == 1.0
        assert same(episode, expected)


@pytest.mark.soak
def test_presets_of_the_tests_have_the_sides_of_the_frames() -> None:
    assert ROTATED.frame_side == PRESETS["tiny"].frame_side == 96
