"""Replays LIBERO's demonstrations (HDF5) as episodes for SFT.

The episodes have the frames, the prompts and the rewards of the environment that replays them.
Demonstrations that fail are dropped, and actions without effect are removed
(`visenv.envs.libero.datasets.turns`). `read_lerobot` reads data sets with stored frames.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym
from typing_extensions import override

from visenv.background import run_here
from visenv.env import Observation
from visenv.errors import DataError
from visenv.policy import Policy, Session
from visenv.rollout import EpisodeSpec, play
from visenv.simulators.session import SimulatorSession
from visenv.types import Episode, Reply, Sample, Sampling, TurnRequest

from ..actions import MOST_ROWS
from ..env import Libero
from ..ground_truth import LiberoTruth
from .lerobot import read_lerobot
from .tasks import LiberoTasks, language, task_names
from .turns import Actions, chunks, without_no_ops

__all__ = ["LiberoDemonstration", "chunks", "read_hdf5", "read_lerobot", "replay", "without_no_ops"]


class LiberoDemonstration(NamedTuple):
    """Holds one demonstration.

    Attributes:
        number: The number of the demonstration in the file.
        actions: Rows of seven numbers from -1 to 1.
        start: The flattened MuJoCo state before the first action.
    """

    number: int
    actions: Actions
    start: tuple[float, ...]


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

    The frames are those of the environment, also their size and orientation.

    Args:
        env: A text environment, ``gym.make("visenv/Libero-v0", ...)``.
        suite: The suite of the task.
        task: The index of the task.
        demonstration: A demonstration of this task (`read_hdf5`).
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
