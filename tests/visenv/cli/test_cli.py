"""The command line as a person meets it: help, mistakes, and what each command does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from visenv.cli import COMMANDS, main
from visenv.episodes import read_episodes
from visenv.registration import ENVIRONMENTS, POLICIES

ENV = "ZoomVQA-v0"
TINY = ["--option", "preset=tiny"]


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    program = """
import sys
from visenv.cli import main
status = main(["--help"])
heavy = {"torch", "transformers", "cv2", "tyro", "rich", "pydantic"} & set(sys.modules)
assert not heavy, heavy
sys.exit(status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(command.summary)}$", done.stdout, re.MULTILINE)
    assert done.stderr == ""


def test_the_installed_program_is_this_one() -> None:
    program = Path(sys.executable).with_name("visenv")
    done = subprocess.run([program, "list"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in (*ENVIRONMENTS, *POLICIES))


def test_no_command_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: visenv COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "train"])
def test_each_command_has_help_without_a_blank_line_too_many(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])
    assert exit_.value.code == 0
    said = capsys.readouterr().out
    assert f"usage: visenv {name}" in said
    assert "\n\n\n" not in said


@pytest.mark.component("torch", "transformers")
def test_train_has_the_recipes_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["train", "--help"])
    assert exit_.value.code == 0
    said = capsys.readouterr().out
    assert "usage: visenv train" in said
    assert all(option in said for option in ("--resume", "--data", "--rl.steps"))


MISTAKES = {
    ("plya", ENV): "Did you mean 'play'?",
    ("card", "ZomVQA-v0"): "Did you mean 'visenv/ZoomVQA-v0'?",
    ("play", "ZoomVQA-v1"): "Did you mean 'visenv/ZoomVQA-v0'?",
    ("rollout", ENV, "--policy", "orcle"): "Did you mean 'oracle'?",
    ("rollout", ENV, "--option", "preset=tinny"): "Did you mean 'tiny'?",
    ("rollout", ENV, "--option", "crop_sid=3"): "Did you mean 'crop_side'?",
    ("rollout", ENV, "--option", "stage"): "key=value, got 'stage'",
    ("rollout", ENV, "--data", "textvq:x"): "Did you mean 'textvqa'?",
    ("rollout", ENV, "--data", "textvqa:/no/such/folder"): "There is no folder",
    ("rollout", ENV, "--policy", "oracle", "--policy-option", "colour=1"): "The policy 'oracle'",
    ("rollout", ENV, "--episodes", "0"): "--episodes must be at least 1, got 0",
    ("rollout", ENV, "--group-size", "-1"): "--group-size must be at least 1",
    ("rollout", ENV, "--seed", "-1"): "--seed must be at least 0",
    ("rollout", ENV, "--temperature", "nan"): "--temperature must be at least 0",
    ("eval", ENV, "--episodes", "-3"): "--episodes must be at least 1",
    ("view", "runs/nothing"): "There is no run folder runs/nothing",
}


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_gets_one_line_that_says_what_is_meant(
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("visenv: ")
    assert said.err.count("\n") == 1
    assert MISTAKES[words] in said.err
    assert list(tmp_path.rglob("*.jsonl")) == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("rollout", ENV, "--polcy", "oracle"), "--policy"),
        (("rollout", ENV, "--episodes", "many"), "--episodes"),
        (("card",), "ENV"),
    ],
    ids=" ".join,
)
def test_an_option_that_cannot_be_read_names_the_nearest(
    words: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 2
    assert hint in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_known_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for command in ("rollout", "eval"):
        assert main([command, ENV, *TINY, "--out", str(tmp_path / "file")]) == 1
        said = capsys.readouterr()
        assert "File exists" in said.err
        assert said.out == ""


def test_ctrl_c_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(prompt: str = "") -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupt)
    assert main(["play", ENV, *TINY, "--no-show", "--images", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "visenv: interrupted\n"


def test_the_card_shows_settings_that_several_makers_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["card", "ArmDoc-v0"]) == 0
    card = capsys.readouterr().out
    assert all(name in card for name in ("ranker:", "preset:", "mode:", "compat:"))


def test_the_card_shows_the_spaces_the_reward_and_the_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["card", "visenv/ZoomVQA-v0"]) == 0
    said = capsys.readouterr().out
    titles = ("visenv/ZoomVQA-v0", "Action space", "Reward", "Episode end", "Arguments of gym.make")
    assert all(title in said for title in titles)
    assert said.count("Arguments") == 1
    assert " • preset: " in said
    assert "``" not in said


def test_rollout_writes_episodes_that_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--episodes", "2", "--group-size", "2", "--seed", "5", "--out", str(tmp_path)]
    assert main(["rollout", ENV, *TINY, "--option", "reward=outcome", *words]) == 0

    episodes = list(read_episodes(tmp_path / "episodes.jsonl"))
    first, _, second, _ = (each.seed for each in episodes)
    assert [(each.seed, each.group, each.member) for each in episodes] == [
        (first, 0, 0),
        (first, 0, 1),
        (second, 1, 0),
        (second, 1, 1),
    ]
    # With reward=outcome the right answer alone is worth 1; both options were heard.
    assert [each.reward for each in episodes] == [1.0] * 4
    assert max(max(image.size) for each in episodes for image in each.images) == 96
    assert f"visenv view {tmp_path}" in capsys.readouterr().out

    assert main(["view", "--no-open", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("command", ["rollout", "eval"])
def test_episodes_that_are_there_are_never_overwritten(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "episodes.jsonl"
    kept.write_text("the work of a week\n")
    assert main([command, ENV, *TINY, "--episodes", "1", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert f"{kept} holds the episodes of an earlier run" in said.err
    assert said.out == ""
    assert kept.read_text() == "the work of a week\n"


@pytest.fixture
def photo_folder(tmp_path: Path) -> Path:
    """A TextVQA folder of four rows: two good, one without an answer, one with a broken image."""
    folder = tmp_path / "photos"
    (folder / "train_images").mkdir(parents=True)
    rows = []
    for number in range(4):
        name = f"photo{number}"
        path = folder / "train_images" / f"{name}.jpg"
        PIL.Image.fromarray(np.full((60, 80, 3), 50 * number, np.uint8)).save(path)
        question = {"question_id": number, "image_id": name, "question": f"what is {number}?"}
        rows.append(question | {"answers": ["yes"] * 10, "image_classes": []})
    del rows[1]["answers"]
    (folder / "train_images" / "photo3.jpg").write_bytes(b"no image")
    (folder / "TextVQA_0.5.1_val.json").write_text(json.dumps({"data": rows}))
    return folder


def test_eval_gives_every_row_an_episode_or_says_why_not(
    photo_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    data = f"textvqa:{photo_folder}?split=val"
    assert main(["eval", ENV, "--data", data, "--out", str(out)]) == 0

    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert ["episodes", "2"] in [line[:2] for line in lines]
    assert ["aborted", "1"] in [line[:2] for line in lines]
    # Wilson's interval of 2 in 2: (1 + z²/4 ± z sqrt(z²/16)) / (1 + z²/2) with z² = 3.8415.
    assert ["accuracy", "1.000", "[0.342,", "1.000]"] in lines
    (left_out,) = [line for line in said.splitlines() if line.startswith("left out: ")]
    assert "TextVQA_0.5.1_val.json:2" in left_out
    (aborted,) = [line for line in said.splitlines() if line.startswith("aborted: ")]
    assert "photo3.jpg" in aborted

    episodes = list(read_episodes(out / "episodes.jsonl"))
    assert [each.status for each in episodes] == ["terminated", "terminated", "aborted"]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rows"][0]["episodes"] == 2
    assert summary["rows"][0]["accuracy"] == pytest.approx([1.0, 0.34238, 1.0], abs=1e-5)
    failures = ["{status}: {item}: {reason}".format_map(each) for each in summary["failures"]]
    assert failures == [left_out, aborted]
    table = (out / "summary.md").read_text()
    assert "TextVQA_0.5.1_val.json:2: left out: no answers" in table
    assert "| accuracy, % | 100.0 [34.2, 100.0] |" in table
    items = (out / "items.csv").read_text().splitlines()
    assert items[0].startswith("item,kind,status,reason,answer,right answers,")
    assert items[1].startswith("textvqa-val-0,yes/no,terminated,,yes,yes | yes")
    assert len(items) == 4


def test_eval_of_one_episode_has_an_interval_for_shares_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", ENV, *TINY, "--episodes", "1", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert " nan" not in said
    assert "[nan" not in said
    text = (tmp_path / "summary.json").read_text()
    rows = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))["rows"]
    # Wilson's interval of 1 in 1 begins at 1 / (1 + z²) = 1 / 4.8415.
    assert rows[0]["accuracy"] == pytest.approx([1.0, 0.20655, 1.0], abs=1e-5)
    assert rows[0]["reward"][1:] == [None, None]


def test_eval_plays_the_same_held_out_scenes_each_time(tmp_path: Path) -> None:
    for run in ("one", "two"):
        out = str(tmp_path / run)
        assert (
            main(["eval", ENV, *TINY, "--episodes", "2", "--policy", "random", "--out", out]) == 0
        )
    one, two = (list(read_episodes(tmp_path / run / "episodes.jsonl")) for run in ("one", "two"))
    assert one == two
    assert one[0].sample_id != one[1].sample_id
