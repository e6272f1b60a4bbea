"""Tests that the example for TRL runs as its page describes, in both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments import few
from tests.programs import run_python

EXAMPLE = Path(__file__).parents[2] / "examples" / "plug_trl.py"


@pytest.mark.component("trl", "torch", "transformers", "tensorboard")
@pytest.mark.parametrize("way", few([[], ["--native"]], 1))
def test_plug_trl_runs_as_documented(way: list[str], tmp_path: Path) -> None:
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
    command = [str(EXAMPLE), *way, *sizes, "--folder", str(tmp_path / "trl")]
    done = run_python(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last.startswith("rewards:")
    rewards = [float(word) for word in last.split()[1:]]
    assert len(rewards) == 2
    # ZoomVQA rewards two well-formed thoughts with .2, because they are pre-filled. ArmDoc rewards
    # only complete turns, which a random model does not write.
    assert all(reward > 0 for reward in rewards) or way
    assert not way or rewards == [0, 0]
