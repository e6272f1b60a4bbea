"""Tests tables 3 and 4 of ARM-Thinker with small files in the published layouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.envs.arm.datasets.test_large_images import mme, write_mme
from tests.envs.arm.datasets.test_vlmeval import encoded, row, write
from visenv.cli import main

LETTERS = {"A": "red", "B": "blue", "C": "", "D": ""}


def played(name: str, out: Path, *words: str) -> dict[str, float | None]:
    """Return the oracle's score in each column, and the average."""
    assert main(["suite", name, *words, "--policy", "oracle", "--out", str(out)]) == 0
    [row] = json.loads((out / "suite.json").read_text())["rows"]
    scores = {column["name"]: column["score"][0] for column in row["columns"]}
    return {**scores, "Avg.": row["average"][0]}


def test_table_4_is_played_from_the_files_of_vlmevalkit(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    choice = {**LETTERS, "answer": "B"}
    dev, validation = row(1, split="dev", **choice), row(2, split="validation", **choice)
    write(folder, dev, validation, name="MMMU_DEV_VAL")
    number = {"answer": "14", "answer_type": "integer", "choices": ""}
    write(folder, row(1, **number), name="MathVista_MINI")
    write(folder, row(1, answer="3/4", choices="[]"), name="MathVision")
    write(folder, row(1, answer="x + 1"), name="MathVerse_MINI_Vision_Only")
    steps = ("2steps_1", "2steps_2", "2steps_multi")
    problem = [row(place, ID="7", key=step, **choice) for place, step in enumerate(steps)]
    write(folder, *problem, name="WeMath")
    write(folder, row(1, answer="A, C", skill="inductive"), name="LogicVista")
    scores = played("arm-reasoning", tmp_path / "out", "--folder", f"vlmeval={folder}")
    names = ["MMMU", "MathVista", "MathVision", "MathVerse", "WeMath", "LogicVista", "Avg."]
    assert scores == dict.fromkeys(names, 1.0)
    [table] = json.loads((tmp_path / "out" / "suite.json").read_text())["rows"]
    assert [column["episodes"] for column in table["columns"]] == [1, 1, 1, 1, 3, 1]


def test_table_3_is_played_from_the_published_layouts(tmp_path: Path) -> None:
    write_mme(tmp_path / "mme", mme(1))
    vstar = tmp_path / "vstar" / "direct_attributes"
    vstar.mkdir(parents=True)
    (vstar / "a.png").write_bytes((tmp_path / "mme" / "data" / "pictures" / "a.png").read_bytes())
    (vstar / "a.json").write_text(json.dumps({"question": "Which?", "options": ["red", "blue"]}))
    (tmp_path / "hr").mkdir()
    for size in ("4K", "8K"):
        made = {"A": "red", "B": "blue", "C": "green", "D": "pink", "answer": "A"}
        write(tmp_path / "hr", row(1, category="single", **made), name=f"HRBench{size}")
    folders = {"vstar": "vstar", "hrbench": "hr", "mme_realworld": "mme"}
    words = [w for name, f in folders.items() for w in ("--folder", f"{name}={tmp_path / f}")]
    scores = played("arm-visual-tools", tmp_path / "out", *words)
    names = ["V*", "HRBench 4K", "HRBench 8K", "MME-RW", "Avg."]
    assert scores == dict.fromkeys(names, 1.0)


def test_missing_folder_leaves_the_table_without_an_average(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_mme(tmp_path, mme(1))
    scores = played("arm-visual-tools", tmp_path / "out", "--folder", f"mme_realworld={tmp_path}")
    assert scores == {
        "V*": None,
        "HRBench 4K": None,
        "HRBench 8K": None,
        "MME-RW": 1.0,
        "Avg.": None,
    }
    assert "- V*: not played: give --folder vstar=PATH" in capsys.readouterr().out
    assert len(encoded()) > 64  # a longer text is an image, a shorter one the index of a row
