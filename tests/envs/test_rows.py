"""Tests that every environment whose task is a question plays a user's own rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.visenv.data.row_files import photo, row, write_lines
from visenv.cli import main
from visenv.env import VisEnv
from visenv.episodes import read_episodes
from visenv.errors import ConfigurationError, DataError
from visenv.types import Episode

CHECK = {
    "name": "check_whether_response_sentence_number_in_range",
    "arguments": {"lower_bound": 1, "upper_bound": 2},
}
QUESTIONS = [
    row(answer="red"),
    row(question="Which?", answer="B", options=["blue", "red"]),
    row(question="How many?", answer=3),
    row(question="Which?", answer=1, options=["blue", "red"]),
]
JUDGED = {"question": "Which color?", "responses": ["red", "blue"]}
ROWS: dict[str, list[dict[str, Any]]] = {
    **dict.fromkeys(("ZoomVQA", "ArmVQA", "MagsZoom", "ArgosImage", "ArftCoding"), QUESTIONS),
    "ArgosVideo": [{"video": "film.mp4", "question": "Brighter?", "answer": "yes"}],
    "ArftSearch": [row(), {"question": "Who?", "answer": ["Ada", "Ada Byron"]}],
    "ArmDocVQA": [{"document": "report.pdf", "question": "Which number?", "answer": 42}],
    "ArmZoom": [
        {**JUDGED, "image": "photos/0.png", "best": 1},
        {**JUDGED, "image": "photos/0.png", "best": "blue"},
        {**JUDGED, "image": "photos/0.png", "responses": ["red"], "best": True},
    ],
    "ArmPreference": [{**JUDGED, "best": 2}, {**JUDGED, "image": "photos/0.png", "best": "2"}],
    "ArmDoc": [{**JUDGED, "document": "report.pdf", "best": 2}],
    "ArmIF": [
        {"prompt": "Write.", "response": "One. Two.", "checks": CHECK, "verdict": True},
        {"prompt": "Write.", "response": "No", "constraint": "It is long.", "verdict": "false"},
    ],
}
TOP = {
    **dict.fromkeys(("ArmVQA", "ArmDocVQA", "ArmZoom", "ArmPreference", "ArmDoc", "ArmIF"), 1.0),
    **dict.fromkeys(("ArgosImage", "ArgosVideo"), 1.0),
    **dict.fromkeys(("ArftCoding", "ArftSearch"), 2.0),
    "ZoomVQA": 2.1,
    "MagsZoom": 4.2,
}
"""The reward of the oracle; in the ARM environments, which have 1.5, it needs no tool for rows."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a picture, a video and a document."""
    photo(tmp_path / "photos" / "0.png", size=(320, 240))
    _video(tmp_path / "film.mp4")
    _report(tmp_path / "report.pdf")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _video(path: Path) -> None:
    import cv2

    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 5, (64, 48))
    for level in range(0, 200, 20):
        writer.write(np.full((48, 64, 3), level, np.uint8))
    writer.release()


def _report(path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    for text in ("Contents", "The number is 42"):
        canvas.drawString(100, 700, text)
        canvas.showPage()
    canvas.save()


def play(folder: Path, name: str, rows: list[dict[str, Any]], *words: str) -> list[Episode]:
    """Evaluate the oracle on rows with the command line, and return the episodes."""
    write_lines(folder / "my.jsonl", rows)
    main(["eval", f"{name}-v0", "--data", "rows:my.jsonl", "--out", "out", *words])
    return list(read_episodes(folder / "out" / "episodes.jsonl"))


@pytest.mark.component("pypdfium2")
@pytest.mark.component("reportlab")
@pytest.mark.component("opencv")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.component("torch")) if name == "MagsZoom" else name
        for name in ROWS
    ],
)
def test_oracle_plays_rows(folder: Path, name: str) -> None:
    words = []
    if name == "ArftSearch":
        write_lines(folder / "texts.jsonl", [{"title": "Ada", "text": "Ada Byron wrote."}])
        main(["search", "build", "texts.jsonl", "--out", "index"])
        words = ["--option", "search=words:index"]
    episodes = play(folder, name, ROWS[name], *words)
    assert [episode.status for episode in episodes] == ["terminated"] * len(ROWS[name])
    assert [episode.metrics["accuracy"] for episode in episodes] == [1.0] * len(ROWS[name])
    highest = [1.5, 1.0] if name == "ArmIF" else [TOP[name]] * len(ROWS[name])
    assert [episode.reward for episode in episodes] == pytest.approx(highest)


def test_argos_names_the_terms_that_it_leaves_out(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_lines(folder / "my.jsonl", QUESTIONS)
    gym.make("visenv/ArgosImage-v0", data=f"rows:{path}")
    assert "the terms spatial, temporal, reasoning are left out" in caplog.text
    caplog.clear()
    teachers = {"detector": "detector:x", "segmenter": "segmenter:x"}
    gym.make("visenv/ArgosImage-v0", data=f"rows:{path}", teachers=teachers)
    assert "left out" not in caplog.text


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ArgosImage", {"reward": "argos"}, "name models with teachers"),
        ("ArgosVideo", {"reward": "no_reasoning"}, "name models with teachers"),
        ("ArftSearch", {}, "search='words:<index>'"),
    ],
)
def test_missing_option_is_named_before_anything_is_loaded(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        gym.make(f"visenv/{name}-v0", data="rows:/no/such/file.jsonl", **options)


BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "responses": ("ArmZoom", {"responses": "red"}, "responses must be a list of texts"),
    "best 0": ("ArmZoom", {"best": 0}, "its number, 1 to 2, got 0"),
    "best 3": ("ArmZoom", {"best": 3}, "its number, 1 to 2, got 3"),
    "best text": ("ArmZoom", {"best": "green"}, "its number, 1 to 2, got 'green'"),
    "single": ("ArmZoom", {"responses": ["red"], "best": 1}, "must be true or false, got 1"),
    "document": ("ArmDoc", {"document": "no.pdf"}, "there is no file"),
    "no PDF": ("ArmDoc", {"document": "photos/0.png"}, "must be a PDF file or a folder"),
    "check": ("ArmIF", {"checks": {"name": "nothing"}}, "the check 'nothing' cannot be used"),
    "arguments": (
        "ArmIF",
        {"checks": {**CHECK, "arguments": {"lower_bound": "x"}}},
        "cannot be used",
    ),
    "no check": ("ArmIF", {"checks": None}, "one of the columns constraint and checks"),
    "verdict": ("ArmIF", {"verdict": "perhaps"}, "must be true or false, got 'perhaps'"),
    "video": ("ArgosVideo", {"video": "no.mp4"}, "there is no file"),
}


@pytest.mark.component("reportlab")
@pytest.mark.parametrize("case", BAD)
def test_rows_of_each_kind_that_cannot_be_used(folder: Path, case: str) -> None:
    name, changes, message = BAD[case]
    good = {"id": "good", **ROWS[name][0]}
    path = write_lines(folder / "my.jsonl", [good, {**good, **changes, "id": "bad"}])
    env = gym.make(f"visenv/{name}-v0", data=f"rows:{path}")
    base = env.unwrapped
    assert isinstance(base, VisEnv)
    (problem,) = getattr(base.source, "problems")  # noqa: B009
    assert message in problem.problem


@pytest.mark.component("opencv")
@pytest.mark.parametrize("name", ["ArgosVideo", "ArmDoc"])
def test_files_that_cannot_be_opened_are_reported_when_they_are_used(
    folder: Path, name: str
) -> None:
    for file in ("film.mp4", "report.pdf"):
        (folder / file).write_bytes(b"nothing")
    path = write_lines(folder / "my.jsonl", ROWS[name])
    env = gym.make(f"visenv/{name}-v0", data=f"rows:{path}")
    with pytest.raises(DataError, match=r"film\.mp4|report"):
        env.reset(seed=0)


def test_card_and_rollout_accept_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(folder / "my.jsonl", QUESTIONS)
    main(["card", "ZoomVQA-v0", "--data", "rows:my.jsonl", "--episodes", "1"])
    assert "sample my.jsonl:" in capsys.readouterr().out
    words = ["--groups", "2", "--out", "played"]
    main(["rollout", "ZoomVQA-v0", "--data", "rows:my.jsonl", *words])
    lines = (folder / "played" / "episodes.jsonl").read_text().splitlines()
    played = {json.loads(line)["sample_id"] for line in lines}
    assert len(lines) == 2
    assert played <= {f"my.jsonl:{number}" for number in range(1, 5)}
