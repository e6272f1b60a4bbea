"""Tests the link to a held-out episode before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from visenv.algos.experiment.report import Change, largest_change, link_change
from visenv.episodes import write_episodes
from visenv.types import Episode, Failure, Message, Turn
from visenv.viewer.gather import episode_files

ASKED = Message("user", ("What is it?",))


def write(path: Path, rewards: Sequence[tuple[str, float]], failure: Failure | None = None) -> Path:
    """Write an episode of one turn for each sample and reward."""
    path.parent.mkdir(parents=True, exist_ok=True)
    episodes = [
        Episode(
            "visenv/Test-v0",
            sample,
            turns=(Turn((ASKED,), "x", reward, (), "stop"),),
            terms={"r": reward},
            metrics={},
            question="",
            answers=(),
            failure=failure,
            status="aborted" if failure else "terminated",
            kind="text",
            seed=0,
            group=0,
            member=0,
        )
        for sample, reward in rewards
    ]
    write_episodes(path, episodes)
    return path


def test_sample_with_the_largest_gain_is_found_in_any_order(tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", [("a", 0.5), ("b", 0.0), ("c", 1.0)])
    after = write(tmp_path / "after.jsonl", [("c", 1.5), ("a", 1.5), ("d", 9.0), ("b", 1.0)])
    # a gains 1.0 (line 0 to line 1), b too, later; c gains 0.5; d has no episode before.
    assert largest_change(before, after) == Change(0, 1, 1.0)


def test_no_gain_has_no_link(tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", [("a", 0.5)])
    after = write(tmp_path / "after.jsonl", [("a", 0.5)])
    assert largest_change(before, after) is None
    assert link_change(tmp_path, before, after) is None


def test_aborted_episodes_are_not_shown(tmp_path: Path) -> None:
    before = write(
        tmp_path / "before.jsonl", [("a", 0.0)], failure=Failure("service", "judge", "away")
    )
    after = write(tmp_path / "after.jsonl", [("a", 1.0)])
    assert largest_change(before, after) is None
    assert largest_change(after, before) is None


def test_link_names_the_files_as_the_report_does(tmp_path: Path) -> None:
    folder = tmp_path / "a job"
    before = write(folder / "evaluation" / "teacher" / "scenes.jsonl", [("x", 1.0), ("a", 0.0)])
    after = write(folder / "evaluation" / "after-rl" / "scenes.jsonl", [("a", 1.0)])
    assert {*episode_files(folder)} == {"evaluation/teacher/scenes", "evaluation/after-rl/scenes"}
    assert link_change(folder, before, after) == (
        f"file://{tmp_path}/a%20job/report.html"
        "#/pair/evaluation%2Fteacher%2Fscenes/1/evaluation%2Fafter-rl%2Fscenes/0"
    )
