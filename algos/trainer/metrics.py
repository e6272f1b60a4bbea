"""Computes the metrics of a step; writes, reads and restores files of metrics.

Each checkpoint contains a copy of the files of metrics. A run that is resumed compares the rows of
the steps before the checkpoint with the copy, and takes the copy if they differ.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from visenv.decoding.files import read_lines
from visenv.decoding.json_text import WRONG_VALUES, read_json
from visenv.errors import RunError
from visenv.evaluation.values import tool_metrics
from visenv.files import append, check_no_link, open_output, write_text
from visenv.types import Episode, Group, ToolCalled

METRICS, EVALUATIONS = "metrics.jsonl", "evaluations.jsonl"
"""The files of the metrics of the steps and of the evaluations of a run."""


def measure(groups: Sequence[Group]) -> dict[str, float]:
    """Return means over the episodes of a step; aborted episodes are only counted.

    Returns:
        ``reward``; ``terms/…`` by name (means over the episodes to which the term applies);
        ``metrics/…`` by name; ``tools/…`` (`tool_metrics`); ``episodes/aborted`` (a count);
        ``episodes/truncated`` (a share); ``episodes/turns`` and ``episodes/tokens`` (sampled
        tokens); ``groups/zero_std``, the share of groups with several members in which all rewards
        are equal.
    """
    whole = [[each for each in group if each.status != "aborted"] for group in groups]
    episodes = [episode for group in whole for episode in group]
    values: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        for name, value in _of_episode(episode).items():
            values[name].append(value)
    several = [group for group in whole if len(group) > 1]
    if several:
        values["groups/zero_std"] = [len({each.reward for each in group}) == 1 for group in several]
    measures = {name: float(np.mean(each)) for name, each in values.items()}
    return measures | {"episodes/aborted": sum(map(len, groups)) - len(episodes)}


def measure_by_env_and_kind(
    groups: Sequence[Group], env_of: Callable[[Group], str]
) -> dict[str, float]:
    """Return the metrics of `measure` for each environment and each kind of sample.

    Args:
        groups: The groups of all processes in the step.
        env_of: A function that returns the name of the environment of a group; ``""`` if the run
            has only one.

    Returns:
        ``env/<environment>/<metric>``, and by kind ``env/<environment>/kind/<kind>/<metric>``. In a
        run with one environment, only ``kind/<kind>/<metric>``. Samples without a kind belong to no
        kind.
    """
    parts: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        env = env_of(group)
        prefix = f"env/{env}/" if env else ""
        if env:
            parts[prefix].append(group)
        # An episode that was aborted before it had a sample has no kind; the others have one.
        if kind := next((episode.kind for episode in group if episode.kind), ""):
            parts[f"{prefix}kind/{kind.replace(' ', '_')}/"].append(group)
    return {
        f"{prefix}{name}": value
        for prefix, some in sorted(parts.items())
        for name, value in measure(some).items()
    }


def _of_episode(episode: Episode) -> dict[str, float]:
    return {
        "reward": episode.reward,
        **{f"terms/{name}": value for name, value in episode.terms.items() if value is not None},
        **{f"metrics/{name}": value for name, value in episode.metrics.items()},
        **{
            f"tools/{name.replace(' ', '_')}": value
            for name, value in tool_metrics(episode).items()
        },
        "episodes/truncated": episode.status == "truncated",
        "episodes/turns": len(episode.turns),
        "episodes/tokens": episode.num_sampled_tokens,
    }


def advantages_by_tool(
    groups: Sequence[Group], advantages: Sequence[Sequence[Any]]
) -> dict[str, float]:
    """Return the mean advantage of episodes by the outcome of their tool calls.

    Figure 3 of Groundlight (arXiv 2506.14821) accumulates these means over the steps of a run.

    Args:
        groups: All groups of the step.
        advantages: The advantages of each episode of each group: ``[]``, or one for each turn,
            which are averaged.

    Returns:
        ``advantage/no_tool`` (no call), ``advantage/tool_ok`` (at least one call succeeded) and
        ``advantage/tool_failed`` (all calls failed). An outcome without episodes is left out.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for group, given in zip(groups, advantages, strict=True):
        for episode, advantage in zip(group, given, strict=True):
            calls = [event for event in episode.events if type(event) is ToolCalled]
            outcome = "tool_ok" if any(call.ok for call in calls) else "tool_failed"
            found[outcome if calls else "no_tool"].append(float(np.mean(advantage)))
    return {f"advantage/{outcome}": float(np.mean(each)) for outcome, each in found.items()}


_MEANS = (
    *("engine_busy", "staleness"),
    *("sampling_seconds", "env_seconds", "scoring_seconds", "waiting_seconds"),
    "sandbox_wait_seconds",
)
_LARGEST = ("longest_seconds", "stalest", "waited_seconds")


def reduced(reports: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Combine the reports of several processes (`EpisodeSource.report`) into one.

    Counts and rates are summed, shares and times of an episode are averaged, and the maximum of
    times for which the step waits is used.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for report in reports:
        for name, value in report.items():
            values[name].append(value)
    return {name: _reduce(name.split("/")[-1], each) for name, each in values.items()}


def _reduce(name: str, values: Sequence[float]) -> float:
    if name in _LARGEST:
        return max(values)
    return float(np.mean(values)) if name in _MEANS else sum(values)


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
