"""Tests ARMBench-VL in one command: all tracks, the average, and rows that are left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.cli import main
from visenv.envs.arm.datasets.armbench import TRACKS, ARMBench
from visenv.episodes import read_episodes
from visenv.errors import ConfigurationError

PERCEPTION, DOCUMENT, FOLLOWING = TRACKS
PLAYER = ["--policy", "visenv.policies.scripted:ScriptedPolicy"]
FIRST = "<think>so</think><answer>Overall Judgment: Answer 1 is better</answer>"


def photo(path: Path, value: int = 90) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(np.full((60, 80, 3), value, np.uint8)).save(path)


def row(number: int, tag: str, gt: Any, **more: Any) -> dict[str, Any]:
    preds = [f"response {place}" for place in range(1 if tag == "single_rm" else 2)]
    return {"idx": number, "rm_tag": tag, "question": "Which?", "preds": preds, "gt": gt, **more}


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    folder = tmp_path / "bench"
    photo(folder / "images" / "a.png")
    photo(folder / "images" / "overview.png", 7)
    for page in (1, 2):
        photo(folder / "documents" / f"report_{page}.png", 200)
    constraints = [{"value": "at most 5 words"}]
    report = {"doc_id": "report.pdf"}
    rows = {
        PERCEPTION: [
            row(1, "pair_rm", 1, images=["a.png"]),
            row(2, "2-way-pair_rm", 2, images=["a.png"]),
            row(3, "pair_rm", 1, images=["missing.png"]),
            row(4, "pair_rm", 1, images=[]),
        ],
        FOLLOWING: [
            row(1, "single_rm", "True", images=["a.png"], constraints=constraints),
            row(2, "single_rm", "True", images=["missing.png"], constraints=constraints),
        ],
        DOCUMENT: [
            row(1, "pair_rm", 1, images=["overview.png"], **report),
            row(2, "pair_rm", 2, images=["missing.png"], **report),
            row(3, "pair_rm", 2, images=["a.png"], doc_id="other.pdf"),
        ],
    }
    for track, made in rows.items():
        (folder / f"{track}.jsonl").write_text("\n".join(map(json.dumps, made)))
    return folder


def test_rows_without_their_image_are_listed_and_never_judged(bench: Path) -> None:
    source = ARMBench(bench, PERCEPTION)
    assert [source[place].id[-1] for place in range(len(source))] == ["1", "2"]
    assert [(each.row, each.problem[:18]) for each in source.problems] == [
        (3, "there is no image "),
        (4, "images must contai"),
    ]


def test_row_about_a_document_uses_the_published_overview_or_ours(bench: Path) -> None:
    source = ARMBench(bench, DOCUMENT)
    assert [source[place].ground_truth.labels["overview"] for place in (0, 1)] == [
        "published",
        "made",
    ]
    assert [len(source[place].images) for place in (0, 1)] == [1, 0]
    assert [each.row for each in source.problems] == [3]  # its document is missing


def test_suite_command_plays_all_tracks_and_prints_the_average(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["suite", "armbench", "--folder", f"armbench={bench}", "--out", str(tmp_path / "out")]
    assert main([*words, *PLAYER, "--policy-option", f"turns={json.dumps([FIRST])}"]) == 0
    # "Answer 1" is right in 1 of 2 perception rows and in 1 of 2 rows about documents. For a single
    # response, it is not a verdict.
    page = (tmp_path / "out" / "suite.md").read_text()
    assert "| accuracy, % | FG | IF | Doc | Avg. |" in page
    [table] = json.loads((tmp_path / "out" / "suite.json").read_text())["rows"]
    assert [column["score"][0] for column in table["columns"]] == [0.5, 0.0, 0.5]
    assert table["average"][0] == pytest.approx(1 / 3)
    assert [column["episodes"] for column in table["columns"]] == [2, 1, 2]
    assert [len(column["left_out"]) for column in table["columns"]] == [2, 1, 1]
    assert page in capsys.readouterr().out
    doc = read_episodes(tmp_path / "out" / "doc" / "episodes.jsonl")
    shown = {each.sample_id[-1]: each.images[0].pixels for each in doc}
    assert (shown["1"] == 7).all()
    assert not (shown["2"] == 7).all()


def test_command_continues_where_it_stopped(bench: Path, tmp_path: Path) -> None:
    words = ["suite", "armbench", "--folder", f"armbench={bench}", "--out", str(tmp_path / "out")]
    assert main([*words, "--policy", "oracle"]) == 0
    before = (tmp_path / "out" / "fg" / "episodes.jsonl").read_bytes()
    assert main([*words, "--policy", "oracle"]) == 0
    assert (tmp_path / "out" / "fg" / "episodes.jsonl").read_bytes() == before
    [table] = json.loads((tmp_path / "out" / "suite.json").read_text())["rows"]
    assert table["average"][0] == 1.0


@pytest.mark.parametrize("track", ["all", PERCEPTION])
def test_unknown_track_is_refused_at_once(bench: Path, track: str) -> None:
    with pytest.raises(ConfigurationError, match="visenv suite armbench"):
        gym.make("visenv/ArmDoc-v0", data=f"armbench:{bench}?track={track}")
    gym.make("visenv/ArmDoc-v0", data=f"armbench:{bench}?track={DOCUMENT}").close()
