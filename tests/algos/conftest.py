"""Leaves out the curves of runs in tests that are not about them."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no curves at the end of a recipe: matplotlib takes a fifth of the time of a tiny run."""
    for name in ("draw_training", "draw_held_out"):
        monkeypatch.setattr(f"visenv.algos.experiment.report.{name}", lambda *_: None)
