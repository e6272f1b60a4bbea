"""Computes the size of a checkpoint, and checks before the first step that it fits on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from visenv.disk import FULL, free_bytes, shown_bytes
from visenv.errors import DiskError, RunError
from visenv.policy import TrainablePolicy

from .config import TrainerConfig

_OPTIMIZER_BYTES = 12
"""Bytes of a trained parameter in the shards: the float32 weight and two moments of AdamW."""


def checkpoint_bytes(policy: TrainablePolicy[Any]) -> int:
    """Return about how many bytes a checkpoint of a policy has: its weights and the optimizer."""
    total = 0
    for parameter in policy.module.parameters():
        # DeepSpeed replaces a sharded parameter by an empty one, and keeps its size.
        count = int(getattr(parameter, "ds_numel", parameter.numel()))
        total += count * parameter.element_size()
        total += count * _OPTIMIZER_BYTES if parameter.requires_grad else 0
    return total


def added_checkpoints(config: TrainerConfig, step: int, existing: int) -> int:
    """Return by how many checkpoints a run at most exceeds those that exist already.

    A new checkpoint is written before an old one is deleted.

    Args:
        config: The settings of the run.
        step: The number of steps that were taken.
        existing: The number of checkpoints in the folder of the run.
    """
    every, keep = config.saving.checkpoint_every, config.saving.keep_checkpoints
    due = sum(
        number % every == 0 or number == config.steps
        for number in range(step + 1, config.steps + 1)
    )
    most = min(existing + due - 1, keep) + 1
    return max(0, most - existing) if due else 0


def check_space(
    folder: Path, config: TrainerConfig, step: int, policy: TrainablePolicy[Any]
) -> None:
    """Check that the checkpoints of a run fit on the disk.

    Args:
        folder: The folder of the run.
        config: The settings of the run.
        step: The number of steps that were taken.
        policy: The policy that is trained.

    Raises:
        RunError: If they do not fit. The message says how much is free and how much is needed.
    """
    existing = len(list((folder / "checkpoints").glob("step_*")))
    count, size = added_checkpoints(config, step, existing), checkpoint_bytes(policy)
    free = free_bytes(folder)
    if free is None or free >= count * size:
        return
    raise RunError(
        f"{shown_bytes(free)} are free in the file system of {folder}, but this run needs "
        f"{shown_bytes(count * size)} for {count} checkpoints of about {shown_bytes(size)}. Free "
        "some space, or lower saving.keep_checkpoints."
    )


def with_advice(error: DiskError, policy: TrainablePolicy[Any]) -> DiskError:
    """Return the error of a disk with the size of a checkpoint, if the disk is full."""
    if error.errno not in FULL:
        return error.with_advice("Continue with --resume.")
    return error.with_advice(
        f"A checkpoint needs about {shown_bytes(checkpoint_bytes(policy))}. Free some space, and "
        "continue with --resume."
    )
