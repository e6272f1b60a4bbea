"""Collects the facts of a run, and finds files and rows that its folder should contain.

A file that was deleted leaves no trace by itself. The other files of the run therefore serve as
evidence: `recipe.json` and `results.json` belong together, and the newest checkpoint of a phase
contains a copy of its metrics and the sizes of its saved episodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from visenv.checksums import is_damaged, without_checksum
from visenv.decoding.files import read_lines, read_regular
from visenv.decoding.json_text import read_json_file
from visenv.errors import DataError
from visenv.old_names import with_new_names

_CHIEF = (
    *("command", "env", "option", "data", "policy", "policy_option", "model.name"),
    *("sampler.name", "groups", "num_generations", "episodes", "repeats"),
    *("temperature", "max_tokens", "seed"),
)
"""Settings that the page always shows, in this order; the others are collapsed."""

_LABELS = {"model.name": "model", "sampler.name": "sampler", "episodes": "samples"}
"""Labels of settings on the page. ``--episodes`` of an evaluation is its number of samples."""

_NAME = re.compile(r"step_[0-9]{6,12}\.jsonl")
"""The names of files of episodes in a phase's folder."""


def run_facts(folder: Path, problems: list[str]) -> dict[str, dict[str, str]]:
    """Return the facts of a run as texts by name.

    Args:
        folder: Folder with ``recipe.json`` (training) or ``run.json`` (rollout and evaluation), or
            with neither.
        problems: A text is appended for each file that cannot be read.

    Returns:
        ``chief``, the most important facts, and ``settings``, all settings, with dotted names for
        nested ones. If the episodes of the folder have no ``run.json``, a fact says so.
    """
    recipe = with_new_names(_read(folder / "recipe.json", problems))
    run = _read(folder / "run.json", problems)
    told = with_new_names(_mapping(run.get("settings")))
    settings = dict(_flat(recipe)) | dict(_flat(told))
    chief = {_LABELS.get(name, name): settings[name] for name in _CHIEF if name in settings}
    chief |= _trained(recipe)
    sessions = run.get("sessions")
    if isinstance(sessions, list) and sessions and isinstance(sessions[-1], dict):
        chief |= _session(sessions[-1])
    if (folder / "episodes.jsonl").exists() and not (folder / "run.json").exists():
        chief["settings"] = "not known: there is no run.json"
    return {"chief": chief, "settings": settings}


def read_file(path: Path, problems: list[str]) -> Any:
    """Return the value of a JSON file, or None if there is no such file or it cannot be read.

    Args:
        path: The file.
        problems: A text is appended if the file cannot be read.
    """
    if not path.exists():
        return None
    try:
        found = read_json_file(read_regular(path))
    except (DataError, OSError) as error:
        problems.append(f"{path} cannot be read: {error}")
        return None
    if not isinstance(found, dict):
        return found
    if is_damaged(found):
        problems.append(f"{path} is damaged: its fields differ from its checksum")
    return without_checksum(found)


def _read(path: Path, problems: list[str]) -> dict[str, Any]:
    found = read_file(path, problems)
    if found is not None and not isinstance(found, dict):
        problems.append(f"{path} must be an object, got {type(found).__name__}")
    return _mapping(found)


def _trained(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return the environments and the phases of a recipe, each on one line."""
    environments = _mapping(recipe.get("environments")).values()
    phases = _mapping(recipe.get("phases"))
    facts = {
        "env": ", ".join(str(_mapping(each).get("id", "")) for each in environments),
        "phases": ", ".join(
            f"{name} ({_mapping(phase).get('algorithm', '')})" for name, phase in phases.items()
        ),
    }
    return {name: text for name, text in facts.items() if text}


def _session(session: Mapping[str, Any]) -> dict[str, str]:
    """Return the start time and the software of the last process that played."""
    versions = _mapping(session.get("versions"))
    facts = {
        "started": str(session.get("started") or ""),
        "commit": str(session.get("commit") or "")[:12],
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    if session.get("modified"):
        facts["commit"] += " with changes"
    return {name: text for name, text in facts.items() if text}


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings with dotted names; empty values and None are omitted."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, f"{name}.{key}" if name else str(key))
    elif value not in (None, "", []):
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def check_settings(folder: Path, problems: list[str]) -> None:
    """Append a problem if the settings or the results of a training run are missing.

    Args:
        folder: The run's folder.
        problems: The list of problems.
    """
    recipe, results = folder / "recipe.json", folder / "results.json"
    found = read_file(results, [])  # its problems are listed already
    if isinstance(found, dict) and "scores" in found and not recipe.exists():
        problems.append(f"{recipe} is missing: the settings of the run are not known")
    # The first scores are measured before the first phase.
    if recipe.exists() and not results.exists() and any(folder.glob("*/metrics.jsonl")):
        problems.append(f"{results} is missing: the scores of the run are not known")


def check_steps(folder: Path, metrics: Iterable[Mapping[str, Any]], problems: list[str]) -> None:
    """Append a problem for each finished phase whose metrics lack steps.

    Args:
        folder: The run's folder.
        metrics: The rows of the metrics, each with its ``phase``.
        problems: The list of problems.
    """
    results = read_file(folder / "results.json", [])  # its problems are listed already
    steps = results.get("steps") if isinstance(results, dict) else None
    found: dict[str, set[Any]] = {}
    for row in metrics:
        found.setdefault(row["phase"], set()).add(row.get("step"))
    for name, count in steps.items() if isinstance(steps, dict) else ():
        if not isinstance(count, int) or isinstance(count, bool):
            continue
        there = sum(isinstance(step, int) and 1 <= step <= count for step in found.get(name, ()))
        if there < count:
            path = folder / name / "metrics.jsonl"
            problems.append(f"{path} has no metrics of {count - there} of {count} steps")


def check_phases(folder: Path, problems: list[str]) -> None:
    """Compare the metrics and the saved episodes of each phase with its newest checkpoint.

    Args:
        folder: The folder of a run with its own phase, or with a folder for each phase.
        problems: A text is appended for each file that is missing or has changed.
    """
    for checkpoints in sorted((*folder.glob("checkpoints"), *folder.glob("*/checkpoints"))):
        newest = max(checkpoints.glob("step_*"), default=None)
        if newest is not None:
            _check_metrics(checkpoints.parent, newest, problems)
            _check_episodes(checkpoints.parent, newest, problems)


def _check_metrics(phase: Path, checkpoint: Path, problems: list[str]) -> None:
    """Append a problem for each file of metrics without all lines of its copy."""
    for copy in sorted(checkpoint.glob("logs/*.jsonl")):
        path = phase / copy.name
        try:
            lines = set(read_lines(path)) if path.exists() else set()
            lost = sum(line not in lines for line in read_lines(copy))
        except OSError:  # named by the functions that show the file
            continue
        if lost:
            problems.append(
                f"{path} differs from its copy {copy}: {lost} of its lines are missing or have "
                "changed"
            )


def _check_episodes(phase: Path, checkpoint: Path, problems: list[str]) -> None:
    """Append a problem if files of episodes are missing or have another size."""
    saved = read_file(checkpoint / "logs/episodes.json", problems)
    sizes = saved if isinstance(saved, dict) else {}
    paths = {phase / "episodes" / name: sizes[name] for name in sizes if _NAME.fullmatch(name)}
    changed = [path for path, size in paths.items() if _size(path) != size]
    if changed:
        more = f", and {len(changed) - 1} more such files" if changed[1:] else ""
        problems.append(f"{changed[0]} is missing or has another size than when it was saved{more}")


def _size(path: Path) -> int | None:
    """Return the size of a file in bytes, or None if it does not exist."""
    return path.stat().st_size if path.is_file() else None
