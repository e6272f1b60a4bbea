"""Tests files of initial states: LIBERO's arrays are read, and code in other files is not run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typing_extensions import override

from visenv.envs.libero.simulator.initial_states import read_initial_states

STATES = np.arange(6.0).reshape(2, 3)


class Code:
    """Represents a pickled value that creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @override
    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_initial_states_are_read_as_they_were_stored(tmp_path: Path) -> None:
    torch.save(STATES, tmp_path / "task.pruned_init")
    read = read_initial_states(tmp_path / "task.pruned_init")
    assert read.dtype == np.float64
    assert read.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_file_with_code_is_refused_and_the_code_does_not_run(tmp_path: Path) -> None:
    torch.save(Code(tmp_path / "made"), tmp_path / "task.pruned_init")
    with pytest.raises(ValueError, match=r"task\.pruned_init cannot be read"):
        read_initial_states(tmp_path / "task.pruned_init")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("size", [0, 1, 20, 200])
def test_truncated_file_is_named(tmp_path: Path, size: int) -> None:
    path = tmp_path / "task.pruned_init"
    torch.save(STATES, path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"task\.pruned_init cannot be read"):
        read_initial_states(path)


@pytest.mark.parametrize("value", [{"states": [1.0]}, STATES[0], torch.zeros(2, 3)])
def test_file_without_a_table_of_numbers_is_refused(tmp_path: Path, value: object) -> None:
    torch.save(value, tmp_path / "task.pruned_init")
    with pytest.raises(ValueError, match=r"must hold a float64 array \[states, numbers\]"):
        read_initial_states(tmp_path / "task.pruned_init")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none cannot be read"):
        read_initial_states(tmp_path / "none")
