"""Tests that closed environments leave no open file, folder, thread or process."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import pytest

from tests.environments import IDS, few
from tests.faults.processes.faulty_echo import children
from visenv.envs.arft.search.world import library
from visenv.testing.record import played

_FIRST = ("visenv/ArftSearch-v0", "visenv/ZoomVQA-v0", "visenv/ArmDoc-v0")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty folder for temporary files, and no index of another test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Engines of other tests may be open in this process, and keep their indices.
    monkeypatch.setattr(library, "_searching", weakref.WeakSet())
    return tmp_path


def _open_files() -> dict[str, str]:
    """Return the targets of the open files of this process, by number."""
    found: dict[str, str] = {}
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[path.name] = str(path.readlink())
        except FileNotFoundError:  # the descriptor of the folder itself
            continue
    return found


def _play(name: str, seed: int) -> None:
    with closing(gym.make(name)) as env:
        played(env, "oracle", seed)
    del env
    gc.collect()


@pytest.mark.parametrize("name", few([*_FIRST, *(each for each in IDS if each not in _FIRST)], 3))
def test_closed_environments_leave_nothing(name: str, temporary: Path) -> None:
    _play(name, 0)  # opens the files that all environments of a process share
    files, threads = len(_open_files()), threading.active_count()
    processes = len(children(os.getpid()))
    left = set(temporary.iterdir())
    for seed in (1, 2):
        _play(name, seed)
    assert len(_open_files()) <= files, _open_files()
    assert threading.active_count() <= threads
    assert len(children(os.getpid())) <= processes
    assert set(temporary.iterdir()) <= left
