"""Saves the results of each phase: scores on held-out episodes, steps and seconds.

From the seconds, `steps_as_long` computes the number of steps of a control that gets as much time
as another phase.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any

from rich.table import Table

from visenv.checksums import sealed, unsealed
from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.episodes import write_episodes
from visenv.errors import RunError
from visenv.files import output_folder, write_text
from visenv.launcher import is_first
from visenv.policy import Policy
from visenv.terminal import printable, rich_text

from ..trainer.distributed import DistributedContext
from ..trainer.evaluation import WAYS, HeldOutScore, Scores, play_held_out
from ..trainer.metrics import METRICS, processor_seconds, read_metrics, step_seconds
from . import parts
from .recipe import Recipe

_PADDING = 3
"""A column has a blank on each side and a line."""


def measure(
    policy: Policy[Any], recipe: Recipe, control: str, folder: Path, processes: DistributedContext
) -> dict[str, dict[str, HeldOutScore]]:
    """Play the held-out episodes of each environment of a recipe, and return their scores.

    Every process plays its share, and all return the scores of all episodes.

    Args:
        policy: The policy that plays.
        recipe: The recipe.
        control: A control of `visenv.evaluation.controls`; ``""`` for none.
        folder: The folder for the greedy episodes, with a file for each environment.
        processes: The processes of the run.
    """
    told, make_envs = recipe.evaluation, parts.evaluation_makers(recipe, control)
    scores: dict[str, dict[str, HeldOutScore]] = {name: {} for name in make_envs}
    numbers = (told.episodes, told.max_tokens, told.temperature)
    share = (processes.rank, processes.count, parts.evaluation_placement(recipe))
    for name, way, played in play_held_out(policy, make_envs, *numbers, *share):
        everyones = processes.gather([episode.without_messages() for episode in played])
        scores[name][way] = HeldOutScore.of([episode for each in everyones for episode in each])
        if way == "greedy":
            collected = processes.collect(played)
            if processes.first:
                every = [episode for each in collected for episode in each]
                for created in (folder.parent, folder):
                    output_folder(created)
                write_episodes(folder / f"{name}.jsonl", every)
    return scores


class Results:
    """Holds the results of a run, and writes them to a JSON file after each change.

    Every process holds the results; the first one writes the file.

    Args:
        path: The file.

    Raises:
        RunError: If the file has another content.

    Attributes:
        scores: The scores by label, in the order of measurement.
        steps: The number of steps of each finished phase.
        seconds: The duration of the steps of each finished phase.
        sampling_seconds: The time in which a policy played the demonstrations of a phase.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            kept = unsealed(read_json_at(path)) if path.exists() else {}
            self.scores: dict[str, Scores] = {
                label: {
                    env: {way: HeldOutScore(**score) for way, score in ways.items()}
                    for env, ways in envs.items()
                }
                for label, envs in kept.get("scores", {}).items()
            }
            self.steps: dict[str, int] = dict(kept.get("steps", {}))
            self.seconds: dict[str, float] = dict(kept.get("seconds", {}))
            self.sampling_seconds: dict[str, float] = dict(kept.get("sampling_seconds", {}))
        except WRONG_VALUES as error:
            raise RunError(
                f"{path} holds no results of a run: {error}. Restore it, or delete it to measure "
                "the scores again."
            ) from error

    def add(self, label: str, scores: Scores) -> None:
        """Save the scores of a label."""
        self.scores[label] = scores
        self._save()

    def finish(self, phase: str, steps: int, seconds: float) -> None:
        """Save the number of steps and the duration of a phase."""
        self.steps[phase] = steps
        self.seconds[phase] = seconds
        self._save()

    def reopen(self, phases: Collection[str], *, baselines: bool) -> None:
        """Remove the results of phases that continue.

        Args:
            phases: The names of the phases.
            baselines: Whether the scores of the baselines are removed too.
        """
        for name in phases:
            self.steps.pop(name, None)
            self.seconds.pop(name, None)
        self.scores = {
            label: scores
            for label, scores in self.scores.items()
            if not any(_is_after(label, name) for name in phases)
            and not (baselines and label.startswith("baseline "))
        }
        self._save()

    def sampled(self, phase: str, seconds: float) -> None:
        """Save the time of playing the demonstrations of a phase."""
        self.sampling_seconds[phase] = seconds
        self._save()

    def tables(self, metrics: Sequence[str], width: int) -> Iterator[Table]:
        """Yield the scores, one row for each label and environment.

        Args:
            metrics: The columns in addition to the reward.
            width: The width of the console in characters; a wider table is divided.
        """
        rows = [
            (label, env, ways) for label, envs in self.scores.items() for env, ways in envs.items()
        ]
        labels = {"": [label for label, _, _ in rows]}
        if any(len(envs) > 1 for envs in self.scores.values()):
            labels["environment"] = [env for _, env, _ in rows]
        columns = {
            name: [_cell(ways, name) for _, _, ways in rows] for name in (*metrics, "reward")
        }
        if any(each.aborted for _, _, ways in rows for each in ways.values()):
            columns["aborted"] = [
                " / ".join(str(ways[way].aborted) for way in WAYS) for _, _, ways in rows
            ]
        yield from fitting_tables("Held-out episodes, greedy / sampled", labels, columns, width)

    def _save(self) -> None:
        if not is_first():
            return
        scores = {
            label: {
                env: {way: asdict(score) for way, score in ways.items()}
                for env, ways in envs.items()
            }
            for label, envs in self.scores.items()
        }
        kept = {
            "scores": scores,
            "steps": self.steps,
            "seconds": self.seconds,
            "sampling_seconds": self.sampling_seconds,
        }
        write_text(self._path, json.dumps(sealed(kept), indent=2) + "\n")


def _is_after(label: str, phase: str) -> bool:
    """Return whether scores were measured with the weights of a phase."""
    after = f"after {phase}"
    return label in (after, f"{phase} (control)") or label.startswith(f"{after}, ")


def _cell(ways: Mapping[str, HeldOutScore], name: str) -> str:
    scores = (ways[way] for way in WAYS)
    values = (each.value(name) for each in scores)
    return " / ".join("–" if value is None else f"{value:.3f}" for value in values)


def steps_as_long(
    name: str, recipe: Recipe, folder: Path, results: Results, *, on_cpu: bool
) -> int:
    """Return the number of steps of a phase of SFT that fit into the time of another phase.

    The time of a step is taken from the phase whose weights this phase starts with. The time of
    sampling the demonstrations is included. On a CPU, it is the processor time, which does not
    depend on other work of the machine. A GPU or an engine works outside of the processor time of
    this process, so the time of the clock is used.

    Args:
        name: The phase with `Phase.as_long_as`.
        recipe: The recipe.
        folder: The folder of the run.
        results: The results of the finished phases.
        on_cpu: Whether the policy computes on a CPU.
    """
    phase = recipe.phases[name]
    before, other = (_metrics(folder / part) for part in (phase.begins_with, phase.as_long_as))
    is_measured = all("seconds/processor" in row for row in (*before, *other))
    in_process = on_cpu and recipe.sampler.name == "transformers"
    # An earlier version of visenv did not measure processor time.
    seconds = processor_seconds if in_process and is_measured else step_seconds
    a_step = sum(map(seconds, before)) / results.steps[phase.begins_with]
    left = sum(map(seconds, other)) - results.sampling_seconds.get(name, 0.0)
    return max(1, round(left / a_step))


def seconds_of(folder: Path) -> float:
    """Return the seconds of the steps of a phase, including those before an interruption."""
    return float(sum(map(step_seconds, _metrics(folder))))


def _metrics(folder: Path) -> list[dict[str, Any]]:
    return [row for _, row in read_metrics(folder / METRICS)]


def fitting_tables(
    title: str,
    labels: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    width: int,
) -> Iterator[Table]:
    """Yield tables that together have all columns; each begins with the labels of the rows.

    Args:
        title: The title of each table.
        labels: The cells of the columns that every table has, by header.
        columns: The cells of the other columns, by header; a table has at least one of them. If
            there is none, one table shows the labels.
        width: The width of the console in characters; labels and one column should fit into it.
    """
    free = width - 1 - sum(map(_width, labels, labels.values()))
    names = list(columns)
    while True:
        shown = names[: _fitting([_width(name, columns[name]) for name in names], free)]
        table = Table(title=rich_text(title))
        cells = {**labels, **{name: columns[name] for name in shown}}
        for name in cells:
            table.add_column(rich_text(name), no_wrap=True)
        for row in zip(*cells.values(), strict=True):
            table.add_row(*map(rich_text, row))
        yield table
        names = names[len(shown) :]
        if not names:
            return


def _width(name: str, cells: Sequence[str]) -> int:
    return max(len(printable(text)) for text in (name, *cells)) + _PADDING


def _fitting(widths: Sequence[int], free: int) -> int:
    """Return the number of leading widths whose sum is at most `free`, at least 1."""
    return max(sum(total <= free for total in accumulate(widths)), 1)
