"""Reads LIBERO's demonstrations (HDF5) in the interpreter that has h5py."""

from __future__ import annotations

from typing import Any

import numpy as np

ACTION_SIZE = 7


def read(path: str) -> dict[str, Any]:
    """Return the demonstrations of a file, and errors for those that cannot be read.

    The layout is ``data/demo_<n>`` with ``actions`` ``[steps, 7]`` and ``states``
    ``[steps, numbers]``, flattened states of MuJoCo before each action. A damaged demonstration is
    skipped.

    Returns:
        ``demonstrations`` (number, actions and first state of each) and ``problems`` (texts).
    """
    import h5py

    found: list[dict[str, Any]] = []
    problems: list[str] = []
    try:
        with h5py.File(path, "r") as file:
            groups = file["data"]
            for name in sorted(groups, key=_number):
                try:
                    found.append({"number": _number(name), **_read(groups[name])})
                except (OSError, KeyError, ValueError, TypeError) as error:
                    problems.append(f"{path}, {name}: {error}")
    except (OSError, KeyError, ValueError, TypeError) as error:
        problems.append(f"{path} cannot be read: {error}")
    return {"demonstrations": found, "problems": problems}


def _read(group: Any) -> dict[str, Any]:
    actions = np.asarray(group["actions"], float)
    states = np.asarray(group["states"][:1], float)
    if actions.ndim != 2 or actions.shape[1] != ACTION_SIZE or not len(actions):
        raise ValueError(f"actions must be [steps, {ACTION_SIZE}], got {actions.shape}")
    if states.ndim != 2 or not (np.isfinite(actions).all() and np.isfinite(states).all()):
        raise ValueError("actions and states must be finite numbers")
    return {"actions": np.clip(actions, -1, 1).tolist(), "start": states[0].tolist()}


def _number(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1
