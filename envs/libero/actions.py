"""Converts text into actions: 255 numbers from -1 to 1, or OpenVLA's bins over its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.decoding.files import read_regular
from visenv.decoding.json_text import read_json_file
from visenv.errors import ConfigurationError, DataError

HALF_BINS = 127
LAST_BIN = 2 * HALF_BINS
"""The largest integer of an action in text; 0 means -1, 127 exactly 0, and 254 means 1."""

_LAST_CENTER = LAST_BIN / (LAST_BIN + 1)
"""The center of OpenVLA's last bin. It divides [-1, 1] into 255 bins, so that the last one is from
253/255 to 1."""

ACTION_SIZE = 7
MOST_ROWS = 16
"""Maximum number of actions of a turn of text."""

MOST_NATIVE_ROWS = 520
"""Maximum number of actions of a chunk of numbers: the environment steps of the longest suite."""

Row = NDArray[np.float64]


class ActionStatistics(NamedTuple):
    """Holds the range of the actions that a policy was trained on (OpenVLA's ``norm_stats``).

    Attributes:
        low: The 1 % quantile of each number, ``[7]``.
        high: The 99 % quantile of each number, ``[7]``.
        mask: Whether the number is normalized, ``[7]``; the gripper is not.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    mask: tuple[bool, ...]


def read_statistics(name: str) -> ActionStatistics:
    """Read the statistics ``"<file>:<key>"`` of a checkpoint of OpenVLA.

    The file is its ``dataset_statistics.json``: ``{key: {"action": {"q01", "q99", "mask"}}}``.

    Raises:
        ConfigurationError: If the file has another form.
    """
    file, _, key = name.rpartition(":")
    try:
        found = read_json_file(read_regular(Path(file)))[key]["action"]
        low, high = (tuple(map(float, found[name])) for name in ("q01", "q99"))
        mask = tuple(map(bool, found.get("mask", [True] * 6 + [False])))
    except (OSError, DataError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"statistics must be '<dataset_statistics.json>:<key>' with q01 and q99 of "
            f"{ACTION_SIZE} numbers, got {name!r} ({type(error).__name__}: {error})."
        ) from error
    sizes = {len(low), len(high), len(mask)}
    if sizes != {ACTION_SIZE} or not np.all(np.isfinite([low, high])):
        raise ConfigurationError(f"{name!r} must hold {ACTION_SIZE} finite numbers each.")
    return ActionStatistics(low, high, mask)


def decode(rows: Sequence[Sequence[int]], statistics: ActionStatistics | None = None) -> list[Any]:
    """Return the actions of a chunk, as numbers from -1 to 1.

    Args:
        rows: Rows of six integers from 0 to 254 and the gripper, 0 (open) or 1 (closed).
        statistics: The range that the integers span, instead of [-1, 1]. An integer is then the
            index of one of OpenVLA's 255 bins of equal width, and means the center of its bin.
    """
    values = (np.asarray(rows, np.float64) - HALF_BINS) / HALF_BINS
    if statistics is not None:
        values *= _LAST_CENTER
        low, high = np.array(statistics.low), np.array(statistics.high)
        spanned = 0.5 * (values + 1) * (high - low) + low
        values = np.clip(np.where(statistics.mask, spanned, values), -1, 1)
    values[:, -1] = [1.0 if row[-1] else -1.0 for row in rows]
    found: list[Any] = values.tolist()
    return found


def encode(
    actions: Sequence[Sequence[float]], statistics: ActionStatistics | None = None
) -> list[Any]:
    """Return the rows of text that are nearest to actions from -1 to 1; the inverse of `decode`."""
    values = np.clip(np.asarray(actions, np.float64), -1, 1)
    grip = values[:, -1] > 0
    if statistics is not None:
        low, high = np.array(statistics.low), np.array(statistics.high)
        span = np.where(high > low, high - low, 1.0)
        values = np.where(statistics.mask, 2 * (values - low) / span - 1, values)
        values = np.clip(values / _LAST_CENTER, -1, 1)
    rows = np.rint(values * HALF_BINS).astype(int) + HALF_BINS
    rows[:, -1] = grip
    found: list[Any] = rows.tolist()
    return found
