"""Tests that the example for TRL runs as its page describes, in both ways."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.environments import few

EXAMPLE = Path(__file__).parents[2] / "examples" / "plug_trl.py"


@pytest.mark.component("trl", "torch", "transformers", "tensorboard")
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("way", few([[], ["--native"]], 1))
def test_plug_trl_runs_as_documented(
    way: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run the program in this process, which may have imported TRL (12 s)."""
    sizes = [
        "--steps",
        "2",
        "--num-generations",
        "2",
        "--turn-tokens",
        "8",
        "--completion-tokens",
        "16",
    ]
    # The example sets it, too; this undoes it after the test.
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [EXAMPLE.name, *way, *sizes, "--folder", "trl"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("rewards:")
    rewards = [float(word) for word in last.split()[1:]]
    assert len(rewards) == 2
    # ZoomVQA rewards two well-formed thoughts with .2, because they are pre-filled. ArmDoc rewards
    # only complete turns, which a random model does not write.
    assert all(reward > 0 for reward in rewards) or way
    assert not way or rewards == [0, 0]
