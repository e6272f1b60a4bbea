"""Reads LIBERO's files of initial states without running code from their pickles."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def initial_states(task: Any) -> Any:
    """Return the initial states of a task of a LIBERO benchmark, float64 ``[states, numbers]``.

    Raises:
        ValueError: If the file is damaged, contains anything but an array, or contains code.
    """
    from libero.libero import get_libero_path

    folder = Path(os.fspath(get_libero_path("init_states")))
    return read_initial_states(folder / task.problem_folder / task.init_states_file)


def read_initial_states(path: Path) -> Any:
    """Return the array of a file of initial states, float64 ``[states, numbers]``.

    LIBERO itself reads the files with ``torch.load(..., weights_only=False)``, which runs any code
    in a file.

    Raises:
        ValueError: If the file is damaged, contains anything but an array, or contains code.
    """
    import numpy as np
    import torch

    reconstruct = np.empty(0).__reduce__()[0]
    # The files name this function as in the version of NumPy that wrote them.
    names = [f"numpy.{package}.multiarray._reconstruct" for package in ("core", "_core")]
    safe: list[Any] = [np.ndarray, np.dtype, np.dtypes.Float64DType]
    safe += [(reconstruct, name) for name in names]
    try:
        with torch.serialization.safe_globals(safe):
            states = torch.load(path, weights_only=True)
    except Exception as error:  # torch raises errors of many classes for a damaged file
        raise ValueError(f"The initial states in {path} cannot be read: {error}") from error
    if not isinstance(states, np.ndarray) or states.ndim != 2 or states.dtype != np.float64:
        raise ValueError(f"{path} must hold a float64 array [states, numbers].")
    return states
