"""Tests the command line: help, mistakes, and the effect of each command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from visenv.cli import COMMANDS, main
from visenv.cli.tables import print_summary
from visenv.episodes import read_episodes
from visenv.evaluation.intervals import Mean
from visenv.evaluation.summary import Summary, SummaryRow
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


@pytest.mark.slow
def test_installed_program_is_this_one() -> None:
    program = Path(sys.executable).with_name("visenv")
    done = subprocess.run([program, "list"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in (*ENVIRONMENTS, *POLICIES))


def test_version_is_that_of_the_installed_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"visenv {version('visenv')}\n"


def test_module_runs_as_the_program_does() -> None:
    command = [sys.executable, "-m", "visenv", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"visenv {version('visenv')}\n"


def test_missing_command_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: visenv COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "train"])
def test_commands_have_help_without_a_blank_line_too_many(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])
    assert exit_.value.code == 0
    said = capsys.readouterr().out
    assert f"usage: visenv {name}" in said
    assert "\n\n\n" not in said


@pytest.mark.component("torch", "transformers")
def test_train_has_the_options_of_its_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["train", "--help"])
    assert exit_.value.code == 0
    said = capsys.readouterr().out
    assert "usage: visenv train" in said
    assert all(option in said for option in ("--resume", "scenes.data", "--phases.rl.steps"))


def test_help_of_train_needs_no_torch() -> None:
    program = """
import sys
sys.modules["torch"] = None  # as if it were not installed
from visenv.cli import main
sys.exit(main(["train", "--help"]) or 10 * main(["train", "zoom_tiny"]))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 10
    assert "usage: visenv train [RECIPE | --env ENVIRONMENT]" in done.stdout
    assert "pip install 'visenv[train]'" in done.stdout
    assert "needs the package 'torch': pip install 'visenv[train]'" in done.stderr


MISTAKES = {
    ("plya", ENV): "Did you mean 'play'?",
    ("card", "ZomVQA-v0"): "Did you mean 'visenv/ZoomVQA-v0'?",
    ("card", "zoomvqa"): "Did you mean 'visenv/ZoomVQA-v0'?",
    ("card", "arm_doc"): "Did you mean 'visenv/ArmDoc-v0'?",
    ("card", ENV, "--picture", "a.bmp"): "--picture writes WebP: name a .webp file, not a.bmp",
    ("card", ENV, "--picture", "gone/a.webp"): "There is no folder gone for --picture",
    ("rollout", ENV, "--option", "data=3"): "a source of samples (visenv.data.source), got 3",
    ("play", "ZoomVQA-v1"): "Did you mean 'visenv/ZoomVQA-v0'?",
    ("rollout", ENV, "--policy", "orcle"): "Did you mean 'oracle'?",
    ("rollout", ENV, "--option", "preset=tinny"): "Did you mean 'tiny'?",
    ("rollout", ENV, "--option", "crop_sid=3"): "Did you mean 'crop_side'?",
    ("rollout", ENV, "--option", "stage"): "key=value, got 'stage'",
    ("rollout", ENV, "--data", "textvq:x"): "Did you mean 'textvqa'?",
    ("rollout", ENV, "--data", "textvqa:/no/such/folder"): "There is no folder",
    (
        "rollout",
        ENV,
        "--policy",
        "oracle",
        "--policy-option",
        "colour=1",
    ): "Known: expert_rate, guess, thought.",
    ("rollout", ENV, "--policy", "scripted"): "needs the option 'turns': add --policy-option turns",
    ("rollout", ENV, "--policy", "openai"): "needs the option 'model': add --policy-option model=V",
    ("rollout", ENV, "--policy", "no_such_module:P"): "No module named 'no_such_module'",
    ("rollout", "mine/X-v0"): "is module:Id or module:Class",
    ("rollout", "CartPole-v1"): "CartPoleEnv does not extend VisEnv",
    ("rollout", ENV, "--groups", "0"): "--groups must be at least 1, got 0",
    ("rollout", ENV, "--num-generations", "-1"): "--num-generations must be at least 1",
    ("rollout", ENV, "--seed", "-1"): "--seed must be at least 0",
    ("rollout", ENV, "--temperature", "nan"): "--temperature must be at least 0",
    ("eval", ENV, "--episodes", "-3"): "--episodes must be at least 1",
    ("eval", ENV, "--repeats", "0"): "--repeats must be at least 1",
    ("eval", ENV, "--control", "no_tol"): "Did you mean 'no_tool'?",
    ("eval", ENV, "--control", "no_tool", "--control", "no_tool"): "must not repeat a control",
    ("eval", ENV, "--option", "tool_calls=0", "--control", "no_tool"): "its control is 'no_image'",
    ("eval", ENV, "--control", "no_tool"): "Name the policy to measure",
    ("eval", "a.jsonl", "--control", "no_tool"): "--control plays an environment, got a.jsonl",
    ("eval", "a.jsonl", "--out", "new"): "There is no file of episodes a.jsonl",
    ("eval",): "Give one of an environment, a file of episodes and --compare A B, got none",
    ("eval", "--compare", "a", "b.jsonl"): "There is no file of episodes",
    ("view", "runs/nothing"): "There is no run folder runs/nothing",
}


@pytest.mark.slow
@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_mistake_gets_one_line_with_a_suggestion(
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
        (("rollout", ENV, "--groups", "many"), "--groups"),
        (("card",), "ENV"),
    ],
    ids=" ".join,
)
def test_option_that_cannot_be_read_names_the_nearest(
    words: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 2
    assert hint in capsys.readouterr().err


def test_folder_that_cannot_be_written_is_known_before_the_work(
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


def test_card_shows_settings_that_several_makers_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["card", "ArmDoc-v0", "--episodes", "0"]) == 0
    card = capsys.readouterr().out
    assert all(name in card for name in ("ranker:", "preset:", "mode:", "compat:"))


def test_card_shows_the_spaces_the_reward_and_the_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["card", "visenv/ZoomVQA-v0", "--episodes", "0"]) == 0
    said = capsys.readouterr().out
    titles = ("visenv/ZoomVQA-v0", "Action space", "Reward", "Episode end", "Arguments of gym.make")
    assert all(title in said for title in titles)
    assert said.count("Arguments") == 1
    assert " • preset: " in said
    assert "``" not in said


def test_card_truncates_no_cell_of_a_table_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["card", "ArgosImage-v0", "--episodes", "0"]) == 0
    said = capsys.readouterr().out
    tables = said.partition("Presets")[2].partition("Arguments of gym.make")[0]
    assert "observati" in tables  # a field whose name is wider than its column
    assert "\N{HORIZONTAL ELLIPSIS}" not in tables


@pytest.mark.slow
def test_card_shows_scores_a_transcript_and_writes_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "zoom.webp"
    assert main(["card", ENV, "--episodes", "2", "--picture", str(picture)]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("oracle", "random", "blind", "Policy, turn 1"))
    assert picture.read_bytes()[8:12] == b"WEBP"


def test_card_refuses_a_picture_of_no_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "zoom.webp"
    assert main(["card", ENV, "--episodes", "0", "--picture", str(picture)]) == 1
    assert "--picture draws an episode" in capsys.readouterr().err
    assert not picture.exists()


def test_rollout_writes_episodes_that_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--groups", "2", "--num-generations", "2", "--seed", "5", "--out", str(tmp_path)]
    assert main(["rollout", ENV, *TINY, "--option", "reward=outcome", *words]) == 0

    episodes = list(read_episodes(tmp_path / "episodes.jsonl"))
    first, _, second, _ = (each.seed for each in episodes)
    assert [(each.seed, each.group, each.member) for each in episodes] == [
        (first, 0, 0),
        (first, 0, 1),
        (second, 1, 0),
        (second, 1, 1),
    ]
    # reward=outcome pays only the right answer, and preset=tiny shows images of 96 px.
    assert [each.reward for each in episodes] == [1.0] * 4
    assert max(max(image.size) for each in episodes for image in each.images) == 96
    assert f"visenv view {tmp_path}" in capsys.readouterr().out

    assert main(["view", "--no-open", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(("command", "option"), [("rollout", "--groups"), ("eval", "--episodes")])
def test_episodes_that_are_there_are_never_overwritten(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "episodes.jsonl"
    kept.write_text("the work of a week\n")
    assert main([command, ENV, *TINY, option, "1", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert f"{kept} contains the episodes of an earlier run" in said.err
    assert said.out == ""
    assert kept.read_text() == "the work of a week\n"


@pytest.fixture
def photo_folder(tmp_path: Path) -> Path:
    """Return a TextVQA folder of four rows: two good, one without an answer, one broken image."""
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


def test_eval_plays_each_row_or_gives_the_reason(
    photo_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    data = f"textvqa:{photo_folder}?split=val"
    assert main(["eval", ENV, "--data", data, "--out", str(out)]) == 0

    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert ["episodes", "3"] in [line[:2] for line in lines]
    assert ["aborted", "1"] in [line[:2] for line in lines]
    # The row whose image cannot be decoded counts as 0. Wilson's interval of 2 in 3:
    # (0.666667 + 0.640243 ± 1.959964 sqrt(0.074074 + 0.106707)) / 2.280486.
    assert ["accuracy", "0.667", "[0.208,", "0.939]"] in lines
    (left_out,) = [line for line in said.splitlines() if line.startswith("left out: ")]
    assert "TextVQA_0.5.1_val.json:2" in left_out
    (aborted,) = [line for line in said.splitlines() if line.startswith("aborted: ")]
    assert "photo3.jpg" in aborted

    episodes = list(read_episodes(out / "episodes.jsonl"))
    assert [each.status for each in episodes] == ["terminated", "terminated", "aborted"]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rows"][0]["episodes"] == 3
    assert summary["rows"][0]["accuracy"] == pytest.approx([2 / 3, 0.20766, 0.93851], abs=1e-5)
    failures = ["{status}: {item}: {reason}".format_map(each) for each in summary["failures"]]
    assert failures == [left_out, aborted]
    table = (out / "summary.md").read_text()
    assert "TextVQA_0.5.1_val.json:2: left out: answers must be a list" in table
    assert "| accuracy, % | 66.7 [20.8, 93.9] |" in table
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
    # Wilson's interval of 1 in 1 starts at 1 / (1 + z²) = 1 / 4.8415.
    assert rows[0]["accuracy"] == pytest.approx([1.0, 0.20655, 1.0], abs=1e-5)
    assert rows[0]["reward"][1:] == [None, None]


def test_rollouts_of_neighboring_seeds_share_no_scene(tmp_path: Path) -> None:
    scenes: list[set[tuple[str, int]]] = []
    for seed in ("0", "1"):
        out = tmp_path / seed
        words = ["--groups", "3", "--seed", seed, "--out", str(out)]
        assert main(["rollout", ENV, *TINY, *words]) == 0
        episodes = read_episodes(out / "episodes.jsonl")
        scenes.append({(each.sample_id, each.seed) for each in episodes})
    assert len(scenes[0] | scenes[1]) == 6
    # A smaller number of groups of the same seed gives the first ones of the larger number.
    words = ["--groups", "2", "--seed", "1", "--out", str(tmp_path / "fewer")]
    assert main(["rollout", ENV, *TINY, *words]) == 0
    fewer = read_episodes(tmp_path / "fewer" / "episodes.jsonl")
    assert {(each.sample_id, each.seed) for each in fewer} < scenes[1]


def test_eval_of_another_seed_plays_other_scenes(tmp_path: Path) -> None:
    for seed in ("0", "1"):
        words = ["--episodes", "3", "--seed", seed, "--out", str(tmp_path / seed)]
        assert main(["eval", ENV, *TINY, *words]) == 0
    one, two = (
        {each.sample_id for each in read_episodes(tmp_path / seed / "episodes.jsonl")}
        for seed in ("0", "1")
    )
    assert len(one | two) == 6


def test_groups_that_do_not_fit_into_80_columns_have_tables_below_each_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    part = Mean(-0.123, -0.234, 0.345)
    labels = ["all", *(f"group_{number}" for number in range(6))]
    rows = [
        SummaryRow("by" if place else "", label, 9, 0, 0, {"reward": part}, 9)
        for place, label in enumerate(labels)
    ]
    print_summary(Summary(rows, [], [], {}))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    means = [line.split("  ") for line in lines if line.startswith(" reward")]
    assert [sum(str(part) in cell for cell in cells) for cells in means] == [2, 2, 2, 1]
    assert [name for line in lines for name in line.split() if name in labels] == labels


@pytest.mark.slow
def test_eval_with_repeats_and_controls_breaks_no_cell_at_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ["--episodes", "8", "--repeats", "4", "--policy", "random", "--out", str(tmp_path)]
    controls = ["--control", "no_tool", "--control", "no_image"]
    assert main(["eval", "ArmDoc-v0", *TINY, *words, *controls]) == 0

    said = capsys.readouterr().out
    tables = said.partition("written to")[0]
    assert all(len(line) <= 80 for line in tables.splitlines())
    # Each mean and its whole interval are in one line.
    means = re.findall(r"-?\d\.\d{3}(?: \[-?\d\.\d{3}, -?\d\.\d{3}\])?", tables)
    assert len(re.findall(r"\d\.\d{3}", tables)) == sum(
        1 if "[" not in each else 3 for each in means
    )
    assert "±" not in said
    for name in ("avg@4", "pass@1", "pass@2", "pass@4"):
        assert re.search(rf"^ {name} +\d\.\d{{3}} \[", tables, re.MULTILINE)
    summary = json.loads((tmp_path / "summary.json").read_text())
    row = summary["rows"][0]
    assert (row["episodes"], row["samples"]) == (32, 8)
    assert row["pass@1"] == pytest.approx(row["avg@4"])
    assert row["avg@4"] == pytest.approx(row["accuracy"])

    assert re.search(r"^ doc_page_retrieval_by_query +\d+ ", said, re.MULTILINE)
    no_tool, no_image = summary["controls"]
    necessity = row["accuracy"][0] - no_tool["value"][0]
    assert no_tool["difference"][0] == pytest.approx(necessity)
    assert f"tool necessity: {necessity:.3f} [" in said
    assert (no_image["control"], no_image["samples"]) == ("no_image", 8)
    assert "no_tool (tool necessity)" in (tmp_path / "summary.md").read_text()
    blind = list(read_episodes(tmp_path / "no_image" / "episodes.jsonl"))
    assert len(blind) == 32
    assert not any(each.images for each in blind)


def test_eval_compares_two_saved_evaluations_by_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["eval", ENV, *TINY, "--episodes", "6", "--out", str(one)]) == 0
    hasty = ["--policy-option", "expert_rate=0", "--episodes", "4"]
    assert main(["eval", ENV, *TINY, *hasty, "--out", str(two)]) == 0
    capsys.readouterr()
    assert main(["eval", "--compare", str(one), str(two / "episodes.jsonl")]) == 0
    said = capsys.readouterr().out
    # Four samples, each right in only one of the evaluations. Agresti and Min: mean 4 / 6,
    # variance (4 + 1) / 6 - 16 / 36 = 0.388889, half width 1.959964 sqrt(0.388889 / 6) = 0.498984.
    accuracy = ["accuracy", "4", "1.000", "0.000", "1.000", "[0.168,", "1.000]"]
    assert accuracy in [line.split() for line in said.splitlines()]
    assert "4 samples are in both; only in A: 2, only in B: 0." in said


def test_eval_of_saved_episodes_gives_the_same_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--episodes", "3", "--repeats", "2", "--policy", "random"]
    assert main(["eval", ENV, *TINY, *words, "--out", str(tmp_path / "new")]) == 0
    table = capsys.readouterr().out.partition("written to")[0]
    saved = str(tmp_path / "new" / "episodes.jsonl")
    assert main(["eval", saved]) == 0
    assert capsys.readouterr().out == table
    assert main(["eval", saved, "--out", str(tmp_path / "copy")]) == 0
    copied, original = (
        sorted(read_episodes(path), key=lambda each: (each.group, each.member))
        for path in (tmp_path / "copy" / "episodes.jsonl", saved)
    )
    assert copied == original
    assert main(["eval", saved, "--out", str(tmp_path / "copy")]) == 1
    assert "contains the episodes of an earlier run" in capsys.readouterr().err


def test_eval_plays_the_same_held_out_scenes_each_time(tmp_path: Path) -> None:
    for run in ("one", "two"):
        out = str(tmp_path / run)
        assert (
            main(["eval", ENV, *TINY, "--episodes", "2", "--policy", "random", "--out", out]) == 0
        )
    one, two = (list(read_episodes(tmp_path / run / "episodes.jsonl")) for run in ("one", "two"))
    assert one == two
    assert one[0].sample_id != one[1].sample_id
