"""Tests the training with each magnifier: what the model knows before, and the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import degraded_training


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(degraded_training, "_SCENES", 6)  # in all tests, since scenes are cached
    monkeypatch.setattr(degraded_training, "_STEPS", 1)
    monkeypatch.setattr(degraded_training, "_SFT_STEPS", 1)


def scores(greedy: float, sampled: float) -> dict[str, Any]:
    ways = {"greedy": greedy, "sampled": sampled}
    evaluations = {
        way: {"reward": 4 * value, "metrics": dict.fromkeys(degraded_training.METRICS, value)}
        for way, value in ways.items()
    }
    return {"after train": {"scenes": evaluations}}


def test_table_has_the_means_over_seeds() -> None:
    runs = [scores(0.5, 0.25), scores(0.75, 0.5)]
    assert degraded_training.table({"none": runs}).splitlines()[2] == (
        "| none | after train | 0.625 / 0.375 | 2.500 / 1.500 | 0.625 / 0.375 | 0.625 / 0.375 "
        "| 0.500 / 0.250, 0.750 / 0.500 |"
    )


@pytest.mark.slow
def test_crops_are_whole_clean_signs_and_views_have_the_size_that_the_policy_sees() -> None:
    crops, numbers = degraded_training.clean_crops()
    assert len(crops) == len(numbers) == 6 * degraded_training.SIGNS
    for crop in crops:
        assert crop.shape == (96, 96, 3)
        # A frame of one color, 12 px wide, lies 4 px inside the crop on all sides.
        for edge in (crop[8:12, 12:84], crop[84:88, 12:84], crop[12:84, 8:12], crop[12:84, 84:88]):
            assert np.ptp(edge.reshape(-1, 3), axis=0).max() < 60
    shown, cells = degraded_training.views()
    assert {view.shape for view in shown} == {(96, 96, 3)}
    assert {*cells} <= {*range(16)}


@pytest.mark.soak
@pytest.mark.component("torch", "transformers")
def test_models_are_trained_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = degraded_training.Options(tmp_path, (0,), ("none", "small-deblur"), 1, 2)
    degraded_training.main(options)
    first = capsys.readouterr().out
    degraded_training.main(options)
    again = capsys.readouterr().out
    rows = [line for line in first.splitlines() if line.startswith("| ")]
    assert rows == [line for line in again.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[:2] for row in rows[1:]] == [
        [f"| {name}", label]
        for name in options.magnifiers
        for label in ("before training", "after train")
    ]
    assert "vision tower" in first
    assert "vision tower" not in again
