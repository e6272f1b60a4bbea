"""Collects the facts of a run: what was trained or played, its settings, versions and commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from visenv.checksums import is_damaged, without_checksum
from visenv.decoding.files import read_regular
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
