"""Writes what a run holds into one page.

The page holds its data, style and scripts; images are the PNG files the episodes were saved with,
named by relative paths. Text that a policy or a data set wrote reaches the page as JSON and is only
ever shown as text; the page's own policy forbids it the network.
"""

from __future__ import annotations

import json
import math
from importlib.resources import files
from pathlib import Path
from typing import Any

from visenv.errors import RunError
from visenv.viewer.gather import gather

SCRIPTS = ("page.js", "curves.js", "film.js", "episode.js", "episodes.js")
"""In the order they run in."""

LONGEST_TEXT = 20_000
"""Characters of one text on the page; of a longer one, the rest is counted."""

DEEPEST = 16
"""Levels of nested data on the page."""


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` into a run's folder.

    Args:
        folder: Holds any of ``metrics.jsonl``, ``results.json`` or ``summary.json``,
            ``episodes.jsonl``, ``episodes/*.jsonl``, ``evaluation/*.jsonl``, and metrics and
            episodes once more in a folder for each phase.

    Returns:
        The page's path. A file that cannot be read is named on the page, the rest is shown.

    Raises:
        RunError: If there is no such folder, or it holds nothing to report.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RunError(
            f"There is no run folder {folder}. Give what training wrote, for example runs/<name>, "
            "or the --out folder of rollout or eval."
        )
    data = gather(folder)
    if not any(data[name] for name in ("metrics", "episodes", "results", "problems")):
        raise RunError(
            f"{folder} holds no metrics.jsonl, results.json or episodes to report on. "
            "Give the folder of a run, for example runs/<name>."
        )
    page = _asset("page.html")
    script = "\n".join(_asset(name) for name in SCRIPTS)
    # The data come last: what they hold is not searched for places to fill.
    for name, text in (("style", _asset("page.css")), ("script", script), ("data", _embed(data))):
        page = page.replace(f"/*{name}*/", text)
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def _embed(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element whatever texts it holds."""
    text = json.dumps(_plain(data), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c")


def _plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON of bounded size: no NaN or infinity (None), no endless text or nesting."""
    if depth > DEEPEST:
        return "…"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        more = len(value) - LONGEST_TEXT
        return value if more <= 0 else f"{value[:LONGEST_TEXT]}… [{more} more characters]"
    if isinstance(value, dict):
        return {str(key): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in value]
    return value


def _asset(name: str) -> str:
    return (files("visenv.viewer") / name).read_text(encoding="utf-8")
