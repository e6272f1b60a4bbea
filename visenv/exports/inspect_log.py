"""Writes saved episodes as logs of Inspect (https://inspect.aisi.org.uk), for `inspect view`.

A log has the JSON layout of `EvalLog`, version 2, as inspect_ai 0.3 reads and writes it. The
episodes of one file and one environment are one log, and the members of a group are the epochs of
their sample. Episodes are written one at a time, so that a long file need not fit into memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from visenv import __version__
from visenv.episodes import read_episodes
from visenv.errors import RunError
from visenv.evaluation.values import is_aborted, labels_key
from visenv.exports.inspect_sample import inspect_sample, scores
from visenv.exports.portable import portable, portable_text
from visenv.files import output_folder, replacing
from visenv.types import Episode
from visenv.viewer.facts import run_facts
from visenv.viewer.gather import episode_files

VERSION = 2
"""Version of the log format."""


def write_inspect_logs(folder: Path, out: Path) -> list[Path]:
    """Write the episodes of a run as logs of Inspect.

    Args:
        folder: The folder of a run, a rollout or an evaluation.
        out: The folder of the logs, which is created.

    Returns:
        The logs, one for each file of episodes and environment.

    Raises:
        DataError: If a file of episodes cannot be read.
        RunError: If the folder contains no episodes.
    """
    found = [
        (path, summary)
        for saved_in, path in episode_files(folder).items()
        for summary in _summaries(saved_in, path)
    ]
    if not found:
        raise RunError(f"{folder} holds no episodes. Give the folder of a run.")
    facts = run_facts(folder, [])["chief"]
    model = facts.get("policy") or facts.get("model") or "unknown"
    output_folder(out)
    return [_write_log(out, summary, path, model) for path, summary in found]


@dataclass
class _Summary:
    """Holds the values of the header of a log: ids of its samples, and sums of their scores.

    An aborted episode counts as 0, as in an evaluation (`visenv.evaluation.values.counted_values`).
    """

    env_id: str
    saved_in: str
    created: str
    ids: list[str] = field(default_factory=list)
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: Counter[str] = field(default_factory=Counter)
    names: defaultdict[tuple[str, ...], set[str]] = field(default_factory=lambda: defaultdict(set))
    lost: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, episode: Episode) -> None:
        self.ids.append(_sample_id(episode))
        labels = labels_key(episode)
        if is_aborted(episode):
            self.lost[labels] += 1
            return
        found = scores(episode)
        self.names[labels] |= found.keys()
        for name, value in found.items():
            self.sums[name] += value
            self.counts[name] += 1

    def means(self) -> Iterator[tuple[str, float, int]]:
        """Yield the name, the mean and the number of episodes of each score."""
        everywhere = {"reward"}.union(*self.names.values())
        counts = self.counts.copy()
        for labels, number in self.lost.items():
            counts.update(dict.fromkeys(self.names.get(labels, everywhere), number))
        for name, count in counts.items():
            yield name, self.sums[name] / count, count


def _summaries(saved_in: str, path: Path) -> list[_Summary]:
    created = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    found: dict[str, _Summary] = {}
    for episode in read_episodes(path, messages=False):
        summary = found.setdefault(episode.env_id, _Summary(episode.env_id, saved_in, created))
        summary.add(episode)
    return list(found.values())


def _write_log(out: Path, summary: _Summary, path: Path, model: str) -> Path:
    """Write a log with the file name that Inspect expects: its time, its task and its id."""
    log_id = _id(summary.env_id, summary.saved_in, summary.created)
    task = re.sub(r"[^\w.-]+", "-", summary.env_id)
    log = out / f"{summary.created.replace(':', '-')}_{task}_{log_id}.json"
    with replacing(log) as partial, partial.open("w", encoding="utf-8") as file:
        header = json.dumps(portable(_header(summary, log_id, model)), allow_nan=False)
        file.write(header[:-1] + ', "samples": [')
        _write_samples(file, _samples(summary.env_id, path, model))
        file.write("]}\n")
    return log


def _write_samples(file: TextIO, samples: Iterator[dict[str, Any]]) -> None:
    for number, sample in enumerate(samples):
        file.write(",\n" if number else "\n")
        json.dump(portable(sample), file, ensure_ascii=False, allow_nan=False)


def _samples(env_id: str, path: Path, model: str) -> Iterator[dict[str, Any]]:
    epochs: Counter[str] = Counter()
    for episode in read_episodes(path, check_pixels=False):
        if episode.env_id == env_id:
            sample_id = _sample_id(episode)
            epochs[sample_id] += 1
            yield inspect_sample(episode, sample_id, epochs[sample_id], model)


def _sample_id(episode: Episode) -> str:
    """Return an id that the members of a group share."""
    return portable_text(f"{episode.sample_id or 'sample'} (seed {episode.seed})")


def _header(summary: _Summary, log_id: str, model: str) -> dict[str, Any]:
    ids = list(dict.fromkeys(summary.ids))
    epochs = max(Counter(summary.ids).values())
    return {
        "version": VERSION,
        "status": "success",
        "eval": {
            "eval_id": log_id,
            "run_id": _id("run", summary.created),
            "created": summary.created,
            "task": summary.env_id,
            "task_id": _id("task", summary.env_id, summary.saved_in),
            "task_display_name": f"{summary.env_id} ({summary.saved_in})",
            "dataset": {"name": summary.saved_in, "samples": len(ids), "sample_ids": ids},
            "model": model,
            "config": {"epochs": epochs},
            "packages": {"visenv": __version__},
        },
        "plan": {"name": "plan", "steps": []},
        "results": {
            "total_samples": len(summary.ids),
            "completed_samples": len(summary.ids) - summary.lost.total(),
            "scores": [_mean(*each) for each in summary.means()],
        },
        "stats": {"started_at": summary.created, "completed_at": summary.created},
    }


def _mean(name: str, mean: float, count: int) -> dict[str, Any]:
    return {
        "name": name,
        "scorer": "visenv",
        "scored_samples": count,
        "metrics": {"mean": {"name": "mean", "value": mean}},
    }


def _id(*parts: str) -> str:
    """Return an id of 22 letters and digits, which depends only on the parts."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:22]
