"""Writes and reads files of metrics, and restores rows that are damaged or missing.

Each checkpoint contains a copy of the files of metrics. A run that is resumed compares the rows of
the steps before the checkpoint with the copy, and takes the copy if they differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from visenv.decoding.files import read_lines
from visenv.decoding.json_text import WRONG_VALUES, read_json
from visenv.errors import RunError
from visenv.files import append, check_no_link, open_output, write_text

METRICS, EVALUATIONS = "metrics.jsonl", "evaluations.jsonl"
"""The files of the metrics of the steps and of the evaluations of a run."""


class MetricsLog:
    """Writes a file of metrics with one JSON object in each line.

    Args:
        path: The file, for example ``metrics.jsonl``.
        step: The number of steps that were taken; lines of later steps are removed.
        stage: The name of the phase, which is written in each object; ``""`` writes none.

    Attributes:
        steps: The steps that the file contains.

    Raises:
        RunError: If a line of the file cannot be read.
    """

    def __init__(self, path: Path, step: int, stage: str = "") -> None:
        check_no_link(path)
        self._path = path
        self._stage = {"stage": stage} if stage else {}
        rows = list(read_metrics(path)) if path.exists() else []
        kept = [(line, row) for line, row in rows if row["step"] <= step]
        self.steps = {row["step"] for _, row in kept}
        write_text(path, "".join(line for line, _ in kept))
        self._file = open_output(path, "ab", buffering=0)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of one step, counted from 1.

        Raises:
            DiskError: If the disk is full or fails.
        """
        line = json.dumps({**self._stage, "step": step, **metrics}) + "\n"
        append(self._file, self._path, line.encode())
        self.steps.add(step)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_metrics(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the complete lines of a file of metrics, each with its object.

    A run that was killed may leave an incomplete last line.

    Raises:
        RunError: If the file cannot be read, or a line contains no metrics.
    """
    try:
        for line in read_lines(path):
            if line.endswith(b"\n"):
                yield line.decode("utf-8"), _row(line)
    except (OSError, *WRONG_VALUES) as error:
        raise RunError(f"{path} does not contain the metrics of a run: {error}") from error


def step_seconds(metrics: Mapping[str, float]) -> float:
    """Return the seconds of a step by the clock: those of its rollouts and of its update."""
    return metrics["seconds/play"] + metrics["seconds/learn"]


def processor_seconds(metrics: Mapping[str, float]) -> float:
    """Return the processor seconds of a step, which do not depend on other work of the machine."""
    return metrics["seconds/processor"]


def restore_rows(path: Path, copy: Path | None, step: int) -> str:
    """Restore the rows of a file of metrics that a checkpoint contains, if they differ.

    Lines that cannot be read, and all rows that are not in the copy, are then removed.

    Args:
        path: The file.
        copy: The copy in the checkpoint. If it is None or does not exist, no row is restored.
        step: The number of steps after which the checkpoint was written.

    Returns:
        A sentence about the rows that were missing or damaged, or ``""``.

    Raises:
        RunError: If the copy cannot be read.
        ConfigurationError: If the file is a link.
    """
    check_no_link(path)
    rows = () if copy is None or not copy.exists() else read_metrics(copy)
    saved = {row["step"]: line for line, row in rows if row["step"] <= step}
    found, is_damaged = _readable_lines(path)
    lost = [number for number, line in saved.items() if found.get(number) != line]
    if not lost and not is_damaged:
        return ""
    # The number of a row can be what is damaged, so no row is kept that the copy does not have.
    kept = saved if lost else {number: line for number, line in found.items() if number <= step}
    write_text(path, "".join(kept[number] for number in sorted(kept)))
    if not lost:
        return ""
    return (
        f"{path} had no row, or a damaged one, of {len(lost)} of {len(saved)} steps (the first is "
        f"step {min(lost)}). These rows were restored from {copy}."
    )


def require_rows(path: Path, step: int) -> None:
    """Check that a file of metrics has a row of every step.

    Raises:
        RunError: If a row of the steps 1 to `step` is missing. The message names the steps.
    """
    steps = {row["step"] for _, row in read_metrics(path)} if path.exists() else set()
    missing = [number for number in range(1, step + 1) if number not in steps]
    if missing:
        raise RunError(
            f"{path} has no metrics of {len(missing)} of {step} steps (from step {missing[0]} to "
            f"step {missing[-1]}). Restore the file from a copy, or start a new run."
        )


def _readable_lines(path: Path) -> tuple[dict[int, str], bool]:
    """Return the lines of a file by step, and whether there is one that cannot be read."""
    found: dict[int, str] = {}
    is_damaged = False
    try:
        for line in read_lines(path):
            try:
                found[_row(line)["step"]] = line.decode("utf-8")
            except WRONG_VALUES:
                is_damaged = True
    except FileNotFoundError:
        return {}, False
    except OSError:
        return {}, True
    return found, is_damaged


def _row(line: bytes) -> dict[str, Any]:
    row = read_json(line)
    return {**row, "step": int(row["step"])}
