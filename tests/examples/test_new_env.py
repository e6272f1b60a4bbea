"""Tests the example of a new environment: its own checks, and that commands find it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments import few
from tests.programs import ROOT, run_python
from visenv.episodes import read_episodes


def visenv(*words: str | Path) -> str:
    """Run a command in the folder of the example, which is not on the search path."""
    program = "import sys; from visenv.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *words],
        cwd=ROOT / "examples",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_new_env_checks_itself_and_is_played() -> None:
    done = run_python("examples/new_env.py")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.endswith("reward 1.0\n")


@pytest.mark.parametrize(
    ("name", "env_id"),
    few([("new_env:mine/Cards-v0", "mine/Cards-v0"), ("new_env:Cards", "new_env:Cards")], 1),
)
def test_new_env_is_found_in_the_current_folder(name: str, env_id: str, tmp_path: Path) -> None:
    visenv("rollout", name, "--groups", "1", "--out", tmp_path)
    (episode,) = read_episodes(tmp_path / "episodes.jsonl")
    assert (episode.env_id, episode.reward) == (env_id, 1.0)


def test_new_env_has_a_card_with_the_arguments_of_its_class() -> None:
    card = visenv("card", "new_env:Cards")
    assert "Turn over one card, then answer." in card
    assert "Arguments of gym.make" in card
    assert "• render_mode" in card
    assert "Event: the call of turn_over succeeded." in card
