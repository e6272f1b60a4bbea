"""Tests which curves of a run are drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from visenv.algos.experiment.curves import draw_training


def test_curves_show_the_metrics_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {
        "warm-up": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}],
        "rl": [{"step": 1, "reward": 0.5, "metrics/success": 0.25, "metrics/steps": 3, "loss": 0}],
    }
    for phase, steps in rows.items():
        (tmp_path / phase).mkdir()
        lines = "".join(json.dumps(row) + "\n" for row in steps)
        (tmp_path / phase / "metrics.jsonl").write_text(lines)
    titles: list[str] = []
    save = Figure.savefig

    def saved(figure: Figure, *args: object, **options: object) -> None:
        titles.extend(axes.get_title() for axes in figure.axes)
        save(figure, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "savefig", saved)
    picture = tmp_path / "curves.png"
    logs = [tmp_path / phase / "metrics.jsonl" for phase in rows]
    draw_training(logs, picture, ("success", "progress"))
    assert [title for title in titles if title] == [
        "warm-up: loss",
        "rl: reward",
        "rl: metrics/success",
        "rl: loss",
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")
