"""Checks and restores the files of a phase before its first step."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from visenv.checksums import check_checksums
from visenv.disk import disk_error
from visenv.errors import RunError
from visenv.policy import TrainablePolicy

from .checkpoint import LOGS
from .config import TrainerConfig
from .disk_space import check_space
from .metrics_log import EVALUATIONS, METRICS, require_rows, restore_rows


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
