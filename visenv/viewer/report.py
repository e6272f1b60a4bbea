"""Gathers a run's metrics, results and episodes, and writes them into one page.

The page holds its data, style and script; images are the PNG files the episodes were saved with,
named by relative paths. Text that a policy or a data set wrote reaches the page as JSON and is only
ever shown as text.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from visenv.episodes import read_episodes
from visenv.errors import RunError
from visenv.types import Answered, Episode, Image, Message, event_to_json

MOST_EPISODES = 600
"""Episodes on one page; of more, an even selection is shown and the page says so."""


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` into a run's folder.

    Args:
        folder: Holds any of ``metrics.jsonl``, ``results.json``, ``episodes.jsonl``,
            ``episodes/*.jsonl``, ``evaluation/*.jsonl``, and the first and third once more in a
            folder for each phase.

    Returns:
        The page's path.

    Raises:
        RunError: If the folder holds nothing to report.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RunError(f"There is no run folder {folder}.")
    data = _gather(folder)
    if not (data["metrics"] or data["episodes"] or data["results"]):
        raise RunError(
            f"{folder} holds no metrics.jsonl, results.json or episodes to report on. "
            "Give the folder of a run, for example runs/<name>."
        )
    page = _asset("page.html")
    parts = {"style": _asset("page.css"), "script": _asset("page.js"), "data": _embedded(data)}
    for name, text in parts.items():
        page = page.replace(f"/*{name}*/", text)
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def _gather(folder: Path) -> dict[str, Any]:
    episodes = [(label, episode, images) for label, episode, images in _episodes(folder)]
    total = len(episodes)
    if total > MOST_EPISODES:
        episodes = [episodes[index * total // MOST_EPISODES] for index in range(MOST_EPISODES)]
    return {
        "name": folder.resolve().name,
        "metrics": _metrics(folder),
        "results": _json(folder / "results.json"),
        "episodes": [_episode(*each) for each in episodes],
        "episodes_in_all": total,
    }


def _metrics(folder: Path) -> list[dict[str, Any]]:
    """Every logged step; a phase is a folder with metrics of its own."""
    found = [folder / "metrics.jsonl", *sorted(folder.glob("*/metrics.jsonl"), key=_age)]
    return [
        {"phase": path.parent.name, **json.loads(line)}
        for path in found
        if path.exists()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def _age(path: Path) -> float:
    return path.stat().st_mtime


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _episodes(folder: Path) -> Iterator[tuple[str, Episode, str]]:
    """Every episode with the name of its file and the relative folder of its images."""
    patterns = ("episodes.jsonl", "episodes/*.jsonl", "evaluation/*.jsonl", "*/episodes/*.jsonl")
    for path in [path for pattern in patterns for path in sorted(folder.glob(pattern))]:
        images = os.path.relpath(path.parent / "images", folder).replace(os.sep, "/")
        label = str(path.relative_to(folder).with_suffix("")).replace("/episodes", "")
        for episode in read_episodes(path):
            yield label, episode, images


def _episode(label: str, episode: Episode, images: str) -> dict[str, Any]:
    answers = [event.answer for event in episode.events if isinstance(event, Answered)]
    return {
        "file": label,
        "id": episode.sample_id,
        "kind": episode.kind,
        "seed": str(episode.seed),  # may exceed what a JavaScript number holds exactly
        "group": episode.group,
        "member": episode.member,
        "reward": episode.reward,
        "status": episode.status,
        "reason": episode.reason,
        "answer": answers[-1] if answers else None,
        "truth": dict(episode.truth),
        "terms": dict(episode.terms),
        "metrics": dict(episode.metrics),
        "tokens": sum(len(segment) for segment in episode.segments),
        "turns": [
            {
                "messages": [_message(message, images) for message in turn.messages],
                "text": turn.text,
                "reward": turn.reward,
                "finish": turn.finish_reason,
                "events": [event_to_json(event) for event in turn.events],
            }
            for turn in episode.turns
        ],
        "closing": [_message(message, images) for message in episode.closing],
    }


def _message(message: Message, images: str) -> dict[str, Any]:
    return {"role": message.role, "parts": [_part(part, images) for part in message.parts]}


def _part(part: str | Image, images: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    width, height = part.size
    return {"image": f"{images}/{part.sha256}.png", "width": width, "height": height}


def _embedded(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element whatever texts it holds."""
    text = json.dumps(_finite(data), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    """The value with every NaN and infinity, which JSON lacks, as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def _asset(name: str) -> str:
    return (files("visenv.viewer") / name).read_text(encoding="utf-8")
