"""Writes the results of a run to a page, and its episodes to parts in a folder next to the page.

::

    report.html         the page: facts, curves, results, and the index of all episodes
    report/             the episodes and the searched texts, which the page loads on demand

Images are the PNG files of the saved episodes, with relative paths. Texts of policies and data sets
are embedded as JSON and only ever shown as text. The content security policy of the page forbids
the network, and all scripts except its own and those that its own scripts load.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from visenv.errors import RunError
from visenv.files import replacing
from visenv.viewer.gather import SavedEpisode, run_data, saved_episodes
from visenv.viewer.index import (
    EPISODES_IN_PART,
    MOST_COLUMNS,
    TEXTS_IN_PART,
    EpisodeIndex,
    ReportWriter,
    bounded,
)

PARTS = "report"
"""Name of the folder of the parts, next to the page."""

SCRIPTS = (
    *("page.js", "store.js", "overview.js", "curves.js", "film.js", "picture.js", "turn.js"),
    *("episode.js", "filters.js", "list.js", "words.js", "groups.js", "compare.js", "keys.js"),
    "main.js",
)
"""Scripts of the page, in the order in which they run."""

STYLES = ("page.css", "list.css", "episode.css", "group.css")


def write_report(folder: str | Path, compare: str | Path | None = None) -> Path:
    """Write ``report.html`` and ``report/`` into a run's folder.

    Args:
        folder: Folder with any of ``recipe.json`` or ``run.json``, ``metrics.jsonl``,
            ``results.json`` or ``summary.json``, ``episodes.jsonl``, ``episodes/*.jsonl``,
            ``evaluation/*/*.jsonl``, and metrics and episodes in a folder for each phase.
        compare: Folder of another run to compare with. Its images are not copied.

    Returns:
        The path of the page. The page names the files that could not be read. An earlier report is
        kept until the new one is complete.

    Raises:
        RunError: If the folder does not exist, or contains nothing to report.
    """
    folder = Path(folder)
    runs = [folder] if compare is None else [folder, Path(compare)]
    for each in runs:
        _require_folder(each)
    problems: list[str] = []
    told = [run_data(each, problems) for each in runs]
    if compare is not None and told[0]["name"] == told[1]["name"]:
        told[1]["name"] += " (2)"
    path, index = folder / "report.html", EpisodeIndex()
    with ReportWriter(folder / PARTS) as store, replacing(path) as partial:
        for number, each in enumerate(runs):
            before = index.count
            label = "" if compare is None else f"{told[number]['name']}: "
            for saved in saved_episodes(each, folder, problems):
                _add(store, index, saved, label)
            told[number]["episodes"] = index.count - before
            _require_content(each, told[number], problems)
        store.close()
        if index.left_out:
            problems.append(
                f"{len(index.left_out):,} terms and metrics are not in the table of episodes, "
                f"which has at most {MOST_COLUMNS} of each"
            )
        data = {
            "runs": told,
            "index": index.to_json(),
            "problems": problems,
            "parts": {
                "folder": PARTS,
                "token": store.token,
                "episodes": EPISODES_IN_PART,
                "texts": TEXTS_IN_PART,
                "bytes_of_texts": store.bytes_of_texts,
            },
        }
        partial.write_text(_page(data), encoding="utf-8")
    return path


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise RunError(
            f"There is no run folder {folder}. Give the folder of a training run, for example "
            "runs/<name>, or the --out folder of rollout or eval."
        )


def _require_content(folder: Path, run: dict[str, Any], problems: list[str]) -> None:
    if not (problems or any(run[name] for name in ("metrics", "episodes", "results"))):
        raise RunError(
            f"{folder} holds no metrics.jsonl, results.json or episodes to report on. "
            "Give the folder of a run, for example runs/<name>."
        )


def _add(store: ReportWriter, index: EpisodeIndex, saved: SavedEpisode, label: str) -> None:
    saved_in = label + saved.saved_in
    index.add(saved.row, saved_in, saved.line)
    store.add({"saved_in": saved_in, "line": saved.line, **saved.record}, saved.text)


def _page(data: dict[str, Any]) -> str:
    """Return the page.

    Its content security policy contains the hashes of its own script and style.
    """
    script = "\n".join(_asset(name) for name in SCRIPTS)
    style = "\n".join(_asset(name) for name in STYLES)
    fills = {
        "script-hash": _hash(script),
        "style-hash": _hash(style),
        "style": style,
        "script": script,
        "data": _embed(data),  # last, because placeholders in the data must not be filled
    }
    page = _asset("page.html")
    for name, text in fills.items():
        page = page.replace(f"/*{name}*/", text)
    return page


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embed(data: dict[str, Any]) -> str:
    """Return JSON that is safe inside a script element, for all texts."""
    text = json.dumps(bounded(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (files("visenv.viewer") / name).read_text(encoding="utf-8")
