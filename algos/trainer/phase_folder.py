"""Locks the folder of a run, checks the disk, and restores the files of a phase that starts."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from visenv.checksums import check_checksums
from visenv.disk import FULL, disk_error, disk_errors, free_bytes, shown_bytes
from visenv.errors import DiskError, RunError
from visenv.files import check_no_link, output_folder
from visenv.policy import TrainablePolicy

from .checkpoint import LOGS
from .config import TrainerConfig
from .metrics import EVALUATIONS, METRICS, require_rows, restore_rows

_NO_LOCKS = "The file system may have no locks: use a folder on another one, such as a local disk."

_OPTIMIZER_BYTES = 12
"""Bytes of a trained parameter in the shards: the float32 weight and two moments of AdamW."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder of a run for this process, and create it if necessary.

    The operating system releases the lock of a process that dies.

    Raises:
        RunError: If another process has locked the folder.
        ConfigurationError: If the folder or the file of the lock is a link.
        DiskError: If the file cannot be locked, for example because the file system has no locks.
    """
    output_folder(folder)
    path = folder / "run.lock"
    check_no_link(path)
    lock = FileLock(path, blocking=False)
    try:
        with disk_errors(path):
            lock.acquire()
    except Timeout:
        raise RunError(f"Another process trains in {folder}: wait for it, or stop it.") from None
    except DiskError as error:
        if error.errno != errno.ENOLCK:
            raise
        raise error.with_advice(_NO_LOCKS) from error
    try:
        yield
    finally:
        lock.release()


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
    """Return the maximum number of checkpoints that a run adds to the existing ones.

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


def require_folder(folder: Path) -> None:
    """Check that the folder of a phase has not been moved or deleted since the phase started.

    Code that writes creates missing folders, so the run would continue in a new, incomplete folder.

    Raises:
        DiskError: If the folder does not contain the metrics of the phase.
    """
    if not (folder / METRICS).exists():
        raise disk_error(folder / METRICS, errno.ENOENT)


def logs_of(folder: Path) -> list[Path]:
    """Return the paths of the files of metrics of a phase."""
    return [folder / METRICS, folder / EVALUATIONS]


def episodes_of(folder: Path, step: int) -> list[Path]:
    """Return the paths of the episodes that a phase has saved in its first `step` steps."""
    last = f"step_{step:06d}.jsonl"
    return sorted(path for path in folder.glob("episodes/step_*.jsonl") if path.name <= last)


def prepare_folder(
    folder: Path,
    checkpoint: Path | None,
    step: int,
    config: TrainerConfig,
    policy: TrainablePolicy[Any],
) -> list[str]:
    """Restore the metrics of a phase, and check that its checkpoints fit on the disk.

    Args:
        folder: The folder of the phase.
        checkpoint: The checkpoint from which the phase continues; None at its start.
        step: The number of steps that were taken.
        config: The settings of the phase.
        policy: The policy that is trained.

    Returns:
        A warning for each file of metrics that was restored.

    Raises:
        RunError: If more steps were taken than the phase has, rows of the metrics are missing, or
            the checkpoints do not fit on the disk.
    """
    if step > config.steps:
        raise RunError(
            f"{folder} has taken {step} steps already, so steps must be at least {step}; got "
            f"{config.steps}."
        )
    warnings = restore_logs(folder, checkpoint, step)
    check_space(folder, config, step, policy)
    return warnings


def restore_logs(folder: Path, checkpoint: Path | None, step: int) -> list[str]:
    """Restore the metrics of a phase from its checkpoint.

    Args:
        folder: The folder of the phase.
        checkpoint: The checkpoint after `step` steps; None if there is none.
        step: The number of steps.

    Returns:
        A warning for each file of metrics that was restored.

    Raises:
        RunError: If the copies are damaged, or the metrics of a step are missing.
    """
    warnings: list[str] = []
    if checkpoint is not None:
        check_checksums(checkpoint / LOGS, required=True)
    for log in logs_of(folder):
        copy = None if checkpoint is None else checkpoint / LOGS / log.name
        if restored := restore_rows(log, copy, step):
            warnings.append(f"Warning: {restored}")
    require_rows(folder / METRICS, step)
    return warnings
