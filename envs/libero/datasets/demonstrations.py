"""Loads demonstrations as episodes for SFT: replayed from LIBERO's HDF5, or stored by LeRobot.

Failed demonstrations are dropped, and actions without effect are removed as in OpenVLA's script: an
action is removed if its first six numbers have a norm below 1e-4 and the gripper command equals
that of the last action that was kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from typing_extensions import override

from visenv.background import run_here
from visenv.data.parquet import ParquetShards
from visenv.decoding.files import read_lines
from visenv.decoding.json_text import read_json
from visenv.env import Observation
from visenv.errors import DataError
from visenv.policy import Policy, Session
from visenv.rollout import EpisodeSpec, play
from visenv.simulators.session import SimulatorSession
from visenv.types import Episode, Image, Message, Reply, Sample, Sampling, Turn, TurnRequest

from .. import prompts
from ..actions import MOST_ROWS, encode
from ..env import Libero
from ..ground_truth import LiberoTruth
from .tasks import LiberoTasks, language, task_names

SMALLEST_MOVE = 1e-4
"""Norm of the first six numbers of an action below which it has no effect."""

FRAME_SIDE = 224

Actions = Sequence[Sequence[float]]


class LiberoDemonstration(NamedTuple):
    """Holds one demonstration.

    Attributes:
        number: Its number in the file.
        actions: Rows of seven numbers from -1 to 1.
        start: The flattened MuJoCo state before the first action.
    """

    number: int
    actions: Actions
    start: tuple[float, ...]


def without_no_ops(actions: Actions) -> list[list[float]]:
    """Return the actions with an effect; for the first action, only the norm counts."""
    return [list(actions[place]) for place in _moving(actions)]


def chunks(actions: Actions, rows: int = MOST_ROWS) -> list[str]:
    """Return actions as the texts of turns, with `rows` actions each."""
    written = encode([list(row) for row in actions])
    return [
        json.dumps({"actions": written[begin : begin + rows]})
        for begin in range(0, len(written), rows)
    ]


def read_hdf5(
    path: str | Path, session: SimulatorSession
) -> tuple[list[LiberoDemonstration], list[str]]:
    """Read a file of LIBERO's demonstrations in the simulator's interpreter.

    Args:
        path: The file, for example ``<task>_demo.hdf5``.
        session: A session with an episode.

    Returns:
        The demonstrations, and an error message for each that cannot be read.
    """
    found = session.act({"demonstrations": str(Path(path).absolute())}).facts
    read = [
        LiberoDemonstration(each["number"], each["actions"], tuple(each["start"]))
        for each in found["demonstrations"]
    ]
    return read, list(found["problems"])


def replay(
    env: gym.Env[Observation, str], suite: str, task: int, demonstration: LiberoDemonstration
) -> Episode | None:
    """Replay a demonstration with text actions and render its frames; return None if it fails.

    Args:
        env: A text environment, ``gym.make("visenv/Libero-v0", ...)``.
        suite: The suite of the task.
        task: The index of the task.
        demonstration: The demonstration.
    """
    sample = Sample(
        id=f"{suite}/{task}/demo_{demonstration.number}",
        question=language(task_names(suite)[task]),
        kind=suite,
        ground_truth=LiberoTruth(suite, task, 0, start=demonstration.start),
    )
    base = env.unwrapped
    if not isinstance(base, Libero):
        raise DataError("Demonstrations can only be replayed in visenv/Libero-v0.")
    source, base.source = base.source, _One(sample)
    try:
        texts = chunks(without_no_ops(demonstration.actions))
        played = run_here(play(env, _Replay(texts), EpisodeSpec(0, index=0)))
    finally:
        base.source = source
    return played if played.status == "terminated" else None


def read_lerobot(folder: str | Path, suite: str) -> Iterator[Episode]:
    """Read LeRobot's data set of a suite (version 2, frames in parquet) as episodes.

    The data set contains only successful demonstrations. Frames are resized to 224 px without
    rotation; a turn shows the frames at the start of its chunk.

    Args:
        folder: The data set, with ``meta/tasks.jsonl`` and ``data/**/*.parquet``.
        suite: The suite of its tasks.

    Raises:
        DataError: If a file cannot be read; the message names the file.
    """
    folder = Path(folder)
    tasks = {row["task_index"]: row["task"] for row in _lines(folder / "meta/tasks.jsonl")}
    known = {language(name): number for number, name in enumerate(task_names(suite))}
    for file in sorted(folder.glob("data/**/*.parquet")):
        try:
            rows = [row.read() for row in ParquetShards([file], ()).rows()]
            yield _stored_episode(rows, tasks[rows[0]["task_index"]], suite, known)
        except (DataError, KeyError, IndexError, ValueError, TypeError) as error:
            raise DataError(
                f"{file} contains no episode: {type(error).__name__}: {error}"
            ) from error


def _stored_episode(
    rows: Sequence[Mapping[str, Any]], task: str, suite: str, known: dict[str, int]
) -> Episode:
    moving = _moving([row["action"] for row in rows])
    turns: list[Turn] = []
    for begin in range(0, len(moving), MOST_ROWS):
        places = moving[begin : begin + MOST_ROWS]
        frames = {
            name: _frame(rows[places[0]][column])
            for name, column in (
                ("agentview", "observation.images.image"),
                ("wrist", "observation.images.wrist_image"),
            )
        }
        messages = (
            tuple(prompts.opening(task, frames, brief=False))
            if not turns
            else (Message("user", prompts.shown_frames(frames)),)
        )
        (text,) = chunks([rows[place]["action"] for place in places])
        turns.append(Turn(messages, text, 0.0, (), "stop"))
    turns[-1] = replace(turns[-1], reward=1.0)
    number = int(rows[0]["episode_index"])
    return Episode(
        "visenv/Libero-v0",
        f"{suite}/{known[task]}/lerobot_{number}",
        suite,
        0,
        number,
        0,
        tuple(turns),
        status="terminated",
        question=task,
    )


def _moving(actions: Actions) -> list[int]:
    """Return the indices of the actions that `without_no_ops` keeps."""
    kept: list[int] = []
    for place, row in enumerate(actions):
        moves = float(np.linalg.norm(np.asarray(row[:6], float))) >= SMALLEST_MOVE
        if moves or (kept and row[6] != actions[kept[-1]][6]):
            kept.append(place)
    return kept


def _frame(stored: dict[str, Any]) -> Image:
    image = Image.from_bytes(stored["bytes"])
    import cv2

    pixels = cv2.resize(image.pixels, (FRAME_SIDE, FRAME_SIDE), interpolation=cv2.INTER_AREA)
    return Image.from_pixels(np.asarray(pixels, np.uint8))


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [read_json(line) for line in read_lines(path)]
    except (OSError, DataError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


class _One(LiberoTasks):
    """Provides a single sample."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    @override
    def __len__(self) -> int:
        return 1

    @override
    def __getitem__(self, index: int) -> Sample:
        return self._sample


class _Replay(Policy[Session]):
    """Replies with given texts in order, then with a chunk that does not move."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = iter(texts)

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        still = json.dumps({"actions": [[127] * 6 + [0]] * MOST_ROWS})
        return Reply.of_text(next(self._texts, still))
