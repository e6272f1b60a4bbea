"""Writes a `Summary` to files: Markdown for people, CSV for calculations, and JSON for programs.

::

    summary.md      the table in the form of papers, all means, tool use, all failures
    summary.csv     one line for each mean: group, metric, value, interval
    summary.json    the whole summary
    items.csv       one line for each episode: its answer, the right answers, all metrics

A policy can write any text as an answer or as the name of a tool; such text is escaped, so that it
cannot break a table.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from visenv.evaluation.intervals import Mean
from visenv.evaluation.summary import (
    ControlRow,
    Summary,
    SummaryRow,
    ToolRow,
    item_of,
)
from visenv.evaluation.values import counted_values, labels_of
from visenv.files import replacing
from visenv.types import Episode, EventLog

_HEADLINES = ("accuracy", "reward")
_COUNTS = ("episodes", "samples", "aborted", "unanswered")
_CELL = 120


def write_summary(folder: Path, title: str, summary: Summary, episodes: Sequence[Episode]) -> None:
    """Write the four files.

    Args:
        folder: The output folder, which must exist.
        title: A description of the evaluation in one line.
        summary: The summary of the evaluation.
        episodes: The episodes of the evaluation.
    """
    _write(folder / "summary.md", markdown(title, summary))
    _write(folder / "summary.json", json.dumps(as_json(summary), indent=2) + "\n")
    _write_csv(folder / "summary.csv", _means(summary))
    _write_csv(folder / "items.csv", _items(episodes))


def as_json(summary: Summary) -> dict[str, Any]:
    """Return the summary as a JSON object; a mean is ``[value, low, high]``, None if not finite."""
    return {
        "rows": [
            {
                **{name: getattr(row, name) for name in ("grouping", "label", *_COUNTS)},
                **{name: _finite(each) for name, each in row.means.items()},
            }
            for row in summary.rows
        ],
        "tools": [
            {
                name: _finite(value) if isinstance(value, Mean) else value
                for name, value in row._asdict().items()
            }
            for row in summary.tools
        ],
        "failures": [failure._asdict() for failure in summary.failures],
        "totals": summary.totals,
        "controls": [
            {
                name: _finite(value) if isinstance(value, Mean) else value
                for name, value in row._asdict().items()
            }
            for row in summary.controls
        ],
    }


def markdown(title: str, summary: Summary) -> str:
    """Return the summary as a Markdown page."""
    parts = [f"# {_cell(title)}", *_headline(summary), "## All means", _mean_table(summary)]
    if summary.totals:
        parts += ["## Totals", cell_table(["score", "value"], _totals(summary))]
    if summary.controls:
        parts += ["## Controls", _control_table(summary.controls)]
    parts += ["## Tool use", _tool_table(summary.tools), f"## Failures: {len(summary.failures)}"]
    parts += ["\n".join(_failure_lines(summary))] if summary.failures else []
    return "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------------------------- Markdown


def _headline(summary: Summary) -> Iterator[str]:
    """Yield the table of a paper for each grouping: a column for each group, in per cent."""
    overall = summary.rows[0]
    name = next((each for each in _HEADLINES if each in overall.means), None)
    if name is None:
        return
    yield f"## {name.capitalize()}"
    for grouping, rows in groupby(summary.rows[1:], key=lambda row: row.grouping):
        yield _headline_table(name, [*rows, overall], f"by {grouping}")
    if len(summary.rows) == 1:
        yield _headline_table(name, [overall], "")


def _headline_table(name: str, rows: Sequence[SummaryRow], corner: str) -> str:
    per_cent = name == "accuracy"
    values = [_shown(row.means.get(name), per_cent) for row in rows]
    unit = f"{name}, %" if per_cent else name
    counts = [
        [name, *(str(getattr(row, name)) for row in rows)] for name in ("episodes", "aborted")
    ]
    columns = [corner, *(row.label for row in rows)]
    return cell_table(columns, [[unit, *values], *counts])


def _mean_table(summary: Summary) -> str:
    names = dict.fromkeys(name for row in summary.rows for name in row.means)
    cells = [
        [
            f"{row.grouping}: {row.label}" if row.grouping else row.label,
            *(str(getattr(row, count)) for count in _COUNTS),
            *(_shown(row.means.get(name)) for name in names),
        ]
        for row in summary.rows
    ]
    return cell_table(["", *_COUNTS, *names], cells)


def _tool_table(rows: Iterable[ToolRow]) -> str:
    cells = [
        [
            row.tool or "(none named)",
            str(row.total),
            *map(_shown, (row.used, row.calls, row.success)),
        ]
        for row in rows
    ]
    columns = ["tool", "calls", "episodes with a call", "calls per episode", "calls with a result"]
    return cell_table(columns, cells)


def _control_table(rows: Sequence[ControlRow]) -> str:
    """Return the accuracy under each control and its decrease (the tool necessity for no_tool)."""
    columns = [
        *("control", "metric", "samples", "aborted"),
        *("under the control", "lost, paired by sample"),
    ]
    cells = [
        [
            f"{row.control} (tool necessity)" if row.control == "no_tool" else row.control,
            row.metric,
            str(row.samples),
            str(row.aborted),
            _shown(row.value),
            _shown(row.difference),
        ]
        for row in rows
    ]
    return cell_table(columns, cells)


def _totals(summary: Summary) -> list[list[str]]:
    return [[name, f"{value:.3f}"] for name, value in summary.totals.items()]


def _failure_lines(summary: Summary) -> Iterator[str]:
    for item, status, reason in summary.failures:
        yield f"- {_cell(item)}: {status}: {_cell(reason, most=400)}"


def cell_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str, most: int = _CELL) -> str:
    """Return a text as one table cell, with all characters escaped that could break the table."""
    cut = text if len(text) <= most else f"{text[:most]}…"
    plain = "".join(each if each.isprintable() else " " for each in cut)
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _shown(mean: Mean | None, per_cent: bool = False) -> str:
    if mean is None or math.isnan(mean.value):
        return ""
    if not per_cent:
        return str(mean)
    low, high = 100 * mean.low, 100 * mean.high
    return f"{100 * mean.value:.1f}" + ("" if math.isnan(low) else f" [{low:.1f}, {high:.1f}]")


# ------------------------------------------------------------------------------------- CSV, JSON


def _means(summary: Summary) -> Iterator[list[Any]]:
    yield ["grouping", "label", *_COUNTS, "metric", "mean", "low", "high"]
    for row in summary.rows:
        counts = [getattr(row, name) for name in _COUNTS]
        for name, each in row.means.items():
            yield [row.grouping, row.label, *counts, name, *_blank(each)]
    for tool in summary.tools:
        for name in ("used", "calls", "success"):
            yield ["tool", tool.tool, "", "", "", "", name, *_blank(getattr(tool, name))]
    for control in summary.controls:
        counts = ["", control.samples, control.aborted, ""]
        yield ["control", control.control, *counts, control.metric, *_blank(control.value)]
        yield ["control", control.control, *counts, "difference", *_blank(control.difference)]
    for name, value in summary.totals.items():
        yield ["total", name, "", "", "", "", name, value, "", ""]


def _items(episodes: Sequence[Episode]) -> Iterator[list[Any]]:
    counted = counted_values(episodes)
    metrics = list(dict.fromkeys(name for values in counted for name in values))
    groupings = list(dict.fromkeys(name for each in episodes for name in labels_of(each)))
    yield ["item", *groupings, "status", "reason", "answer", "right answers", *metrics]
    for episode, values in zip(episodes, counted, strict=True):
        labels = labels_of(episode)
        right = list(episode.answers)
        yield [
            item_of(episode),
            *(labels.get(name, "") for name in groupings),
            episode.status,
            episode.end_reason,
            EventLog(episode.events).answer or "",
            " | ".join(map(str, right)),
            *(values.get(name, "") for name in metrics),
        ]


def _write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    with _writing(path) as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _write(path: Path, text: str) -> None:
    with _writing(path) as file:
        file.write(text)


@contextmanager
def _writing(path: Path) -> Iterator[TextIO]:
    # Half of a surrogate pair, which a policy can write, is written as its number.
    options: dict[str, Any] = {"errors": "backslashreplace", "newline": "\n"}
    with replacing(path) as partial, partial.open("w", encoding="utf-8", **options) as file:
        yield file


def _finite(mean: Mean) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in mean]


def _blank(mean: Mean) -> list[float | str]:
    return [value if math.isfinite(value) else "" for value in mean]
