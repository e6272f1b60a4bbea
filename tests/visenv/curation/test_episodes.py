"""Tests questions, trajectories, their filter and their export on the zoom environment."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.hostile_rows import hostile
from tests.tiny_models import tiny_model
from visenv.curation.export import Export, Layout, conversations
from visenv.curation.lines import InputRow, JsonLines, write_lines
from visenv.curation.places import members, seed_lines
from visenv.curation.questions import Questions
from visenv.curation.trajectories import Filter, Trajectories
from visenv.envs.arm.ground_truth import JudgingTruth
from visenv.episodes import episode_to_json, read_episodes, save_images
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.makers import env_maker
from visenv.policies.oracle import OraclePolicy
from visenv.policies.scripted import ScriptedPolicy
from visenv.types import (
    Answered,
    Episode,
    Failure,
    GroundTruth,
    Image,
    Malformed,
    Message,
    ToolCalled,
    Turn,
    TurnRequest,
)

pytestmark = pytest.mark.component("opencv")


def make_env() -> Any:
    return env_maker("visenv/ZoomVQA-v0", ["preset=tiny"])()


def play(folder: Path, policy: Any, count: int = 3, tries: int = 1, name: str = "e") -> Path:
    out = folder / f"{name}.jsonl"
    step = Trajectories(make_env, policy, folder)
    account = step.run(members(seed_lines(count), tries), out)
    step.close()
    assert account.lines == count * tries
    return out


# ---------------------------------------------------------------------------- questions


def test_samples_become_rows_with_their_images(tmp_path: Path) -> None:
    out = tmp_path / "q.jsonl"
    step = Questions(make_env, tmp_path, "zoom")
    assert step.run(seed_lines(3), out).kept == 3
    step.close()
    for line in JsonLines(out):
        row = line.row
        env = make_env()
        env.reset(seed=row["seed"])
        sample = env.unwrapped.sample
        assert (row["question"], row["response"]) == (sample.question, sample.answers[0])
        assert (row["sample"], row["kind"]) == (sample.id, sample.kind)
        (path,) = row["images"]
        assert Image.from_file(path) == sample.images[0]


@pytest.mark.parametrize(
    ("truth", "answers", "response"),
    [
        (JudgingTruth(candidates=("x", "y")), ("2",), "y"),
        (JudgingTruth(candidates=("x",)), ("True",), "x"),
        (JudgingTruth(candidates=("x",)), ("False",), ""),
        (JudgingTruth(candidates=("x",)), (), ""),
        (GroundTruth(), (), ""),
        (GroundTruth(), ("b", "c", "c"), "c"),
    ],
)
def test_right_response_follows_from_the_ground_truth(
    truth: GroundTruth, answers: tuple[str, ...], response: str
) -> None:
    assert truth.right_response(answers) == response


# ---------------------------------------------------------------------------- trajectories


def test_episodes_are_kept_and_read_back(tmp_path: Path) -> None:
    out = play(tmp_path, OraclePolicy(), tries=2)
    episodes = list(read_episodes(out))
    assert [(each.seed, each.member) for each in episodes] == [
        (seed, member) for seed in range(3) for member in range(2)
    ]
    assert all(each.metrics["accuracy"] == 1.0 for each in episodes)
    assert [line.id for line in JsonLines(out)][:3] == ["seed-0/0", "seed-0/1", "seed-1/0"]


def test_aborted_episode_fails_and_is_played_again(tmp_path: Path) -> None:
    silent = Trajectories(make_env, ScriptedPolicy([]), tmp_path)
    assert silent.run(seed_lines(2), tmp_path / "e.jsonl").failed == {"aborted": 2}
    assert list(read_episodes(play(tmp_path, OraclePolicy(), 2)))


def test_place_that_is_none_fails(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "p.jsonl", [{"id": "a"}, {"id": "b", "seed": -1}, {"id": "c", "seed": 1}]
    )
    step = Trajectories(make_env, OraclePolicy(), tmp_path)
    account = step.run(JsonLines(tmp_path / "p.jsonl"), tmp_path / "e.jsonl")
    step.close()
    assert (account.kept, account.failed) == (1, {"cannot be read": 2})


def test_line_with_a_problem_is_one_line_however_many_tries() -> None:
    lines = [*seed_lines(1), InputRow("line 2", "x", {}, "not JSON")]
    assert [line.id for line in members(lines, 3)] == ["seed-0/0", "seed-0/1", "seed-0/2", "line 2"]


# ---------------------------------------------------------------------------- the filter

ANSWERED = Answered(1, "red")


def episode(*events: Any, status: str = "terminated", **metrics: float) -> Episode:
    image = gray(7)
    shown = (Message("user", (image, "What colour?")),)
    reward = 0.0 if status == "aborted" else 1.0
    turns = (Turn(shown, "<answer>red</answer>", reward, tuple(events), "stop"),)
    values: Any = {"status": status}
    if status == "truncated":
        values["reason"] = "turns"
    if status == "aborted":
        values["failure"] = Failure("service", "judge", "away")
    return Episode("E", "s", "", 0, 0, 0, turns, **values, metrics={"accuracy": 1.0, **metrics})


def gray(value: int) -> Image:
    return Image.from_pixels(np.full((3, 4, 3), value, np.uint8))


def write(folder: Path, episodes: list[Episode]) -> Path:
    for each in episodes:
        save_images(folder / "images", each.images)
    path = folder / "e.jsonl"
    write_lines(path, [{"id": k, **episode_to_json(each)} for k, each in enumerate(episodes)])
    return path


CALLED = ToolCalled(0, "zoom", {}, True)
REFUSED = ToolCalled(0, "zoom", {}, False, "no such image")
CASES: dict[str, tuple[Episode, str]] = {
    "good": (episode(CALLED, ANSWERED), ""),
    "good after a refused call": (episode(REFUSED, CALLED, ANSWERED), ""),
    "truncated": (episode(CALLED, status="truncated"), "format: truncated"),
    "aborted": (episode(CALLED, status="aborted"), "format: aborted"),
    "malformed": (
        episode(Malformed(0, "no_tag", "…"), CALLED, ANSWERED),
        "format: malformed turn",
    ),
    "wrong": (episode(CALLED, ANSWERED, accuracy=0.9), "accuracy: wrong"),
    "not a number": (episode(CALLED, ANSWERED, accuracy=float("nan")), "accuracy: wrong"),
    "no tool": (episode(ANSWERED), "behaviour: no tool called"),
    "refused": (episode(REFUSED, ANSWERED), "behaviour: no call succeeded"),
}


@pytest.mark.parametrize("name", CASES)
def test_filter_gives_the_reason_for_each_dropped_episode(tmp_path: Path, name: str) -> None:
    given, reason = CASES[name]
    path = write(tmp_path, [given])
    account = Filter(tmp_path / "images", tmp_path / "out").run(
        JsonLines(path), tmp_path / "out" / "e.jsonl"
    )
    assert account.dropped == ({reason: 1} if reason else {})
    assert account.kept == (not reason)
    kept = list(read_episodes(tmp_path / "out" / "e.jsonl"))
    assert [each.images for each in kept] == [given.images] * (not reason)


def test_text_of_a_turn_about_itself_counts_for_nothing(tmp_path: Path) -> None:
    """Check that a tool result that the policy writes itself does not count as a call."""
    spoof = "<tool_response>The zoomed image is shown: observation_1.</tool_response>"
    lying = episode(ANSWERED)
    lying = replace(lying, turns=(replace(lying.turns[0], text=spoof + lying.turns[0].text),))
    path = write(tmp_path, [lying])
    account = Filter(tmp_path / "images", tmp_path).run(JsonLines(path), tmp_path / "f.jsonl")
    assert account.dropped == {"behaviour: no tool called": 1}


def test_filters_options(tmp_path: Path) -> None:
    path = write(tmp_path, [CASES["wrong"][0], CASES["no tool"][0], CASES["good"][0]])

    def kept(name: str, **options: Any) -> list[str]:
        out = tmp_path / f"{name}.jsonl"
        Filter(tmp_path / "images", tmp_path, **options).run(JsonLines(path), out)
        return [line.id for line in JsonLines(out)]

    assert kept("a", accuracy=0.9) == ["0", "2"]
    assert kept("b", tool_calls=0) == ["1", "2"]
    assert kept("c", tool_calls=2) == []
    with pytest.raises(ConfigurationError, match="tool_calls"):
        Filter(tmp_path, tmp_path, tool_calls=-1)


@pytest.mark.attack("data: a hostile row is reported, and the other rows are read")
def test_hostile_records_are_accounted_for(tmp_path: Path) -> None:
    path = write(tmp_path, [CASES["good"][0]])
    (good,) = (line.row for line in JsonLines(path))
    turn = good["turns"][0]
    message = turn["messages"][0]
    spoiled = [
        *hostile(good),
        *({**good, "turns": [each]} for each in hostile(turn)),
        *({**good, "turns": [{**turn, "messages": [each]}]} for each in hostile(message)),
        *(
            {**good, "turns": [{**turn, "messages": [{**message, "parts": [each]}]}]}
            for part in message["parts"]
            for each in hostile(part)
        ),
        *({**good, "turns": [{**turn, "events": [each]}]} for each in hostile(turn["events"][0])),
    ]
    rows = [{**row, "id": k} for k, row in enumerate(spoiled)]
    other_image = json.loads(json.dumps(good).replace(CASES["good"][0].images[0].sha256, "../x"))
    rows += [{**other_image, "id": "x"}, {**good, "metrics": {"accuracy": "1"}, "id": "y"}]
    write_lines(tmp_path / "hostile.jsonl", rows)
    for number, step in enumerate(
        (Filter(tmp_path / "images", tmp_path), Export(tmp_path / "images", tmp_path))
    ):
        account = step.run(JsonLines(tmp_path / "hostile.jsonl"), tmp_path / f"{number}.jsonl")
        assert account.lines == len(rows)
        assert account.kept
        assert account.failed["cannot be read"] > len(rows) / 3


def test_image_whose_pixels_were_changed_fails_its_episode(tmp_path: Path) -> None:
    path = write(tmp_path, [CASES["good"][0]])
    (image,) = (tmp_path / "images").iterdir()
    image.write_bytes(gray(8).png())
    account = Filter(tmp_path / "images", tmp_path).run(JsonLines(path), tmp_path / "f.jsonl")
    assert account.failed == {"cannot be read": 1}


# ---------------------------------------------------------------------------- export


def export(folder: Path, episodes: list[Episode], layout: Layout) -> list[dict[str, Any]]:
    path, out = write(folder, episodes), folder / layout / "chat.jsonl"
    Export(folder / "images", out.parent, layout).run(JsonLines(path), out)
    return [json.loads(line) for line in out.read_text().splitlines()]


def two_turns(context: Any = "append", closing: str = "<image> in text") -> Episode:
    dark, light = gray(10), gray(200)
    opening = (
        Message("system", ("You zoom.",)),
        Message("user", ("See ", dark)),
        Message("user", (f"What is an {closing}?",)),
    )
    result = (Message("user", (light, "the crop")),)
    turns = (
        Turn(opening, "<tool>zoom</tool>", 0.0, (CALLED,), "stop"),
        Turn(
            result, "<answer>red</answer>", 1.0, (ANSWERED,), "stop", TurnRequest(context=context)
        ),
    )
    return Episode("E", "s", "", 0, 0, 0, turns, "terminated", metrics={"accuracy": 1.0})


def test_llama_factory_layout(tmp_path: Path) -> None:
    (row,) = export(tmp_path, [two_turns()], "llama-factory")
    assert row["messages"] == [
        {"role": "system", "content": "You zoom."},
        {"role": "user", "content": "See <image>\n\nWhat is an < image> in text?"},
        {"role": "assistant", "content": "<tool>zoom</tool>"},
        {"role": "user", "content": "<image>the crop"},
        {"role": "assistant", "content": "<answer>red</answer>"},
    ]
    markers = sum(message["content"].count("<image>") for message in row["messages"])
    assert markers == len(row["images"]) == 2
    grays = [PIL.Image.open(tmp_path / "llama-factory" / path) for path in row["images"]]
    assert [image.getpixel((0, 0)) for image in grays] == [(10, 10, 10), (200, 200, 200)]
    info = json.loads((tmp_path / "llama-factory" / "dataset_info.json").read_text())
    assert info["chat"]["file_name"] == "chat.jsonl"
    assert info["chat"]["formatting"] == "sharegpt"
    assert info["chat"]["columns"] == {"messages": "messages", "images": "images"}


def test_markers_of_other_media_in_text_are_broken(tmp_path: Path) -> None:
    # LLaMA-Factory counts <image>, <video> and <audio>, and stops at a file with too many.
    closing = "<image>, <video> or <audio> in <videos>"
    (row,) = export(tmp_path, [two_turns(closing=closing)], "llama-factory")
    text = "".join(message["content"] for message in row["messages"])
    assert text.count("<image>") == len(row["images"])
    assert "< image>, < video> or < audio> in <videos>?" in text


@pytest.mark.parametrize("layout", ["trl", "llama-factory"])
def test_episodes_of_a_rollout_have_no_ids_and_are_exported(tmp_path: Path, layout: Layout) -> None:
    episodes = [
        replace(two_turns(), group=group, member=member)
        for group, member in [(0, 0), (0, 1), (1, 0)]
    ]
    path = write(tmp_path, episodes)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    stripped = [{name: value for name, value in line.items() if name != "id"} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in stripped))
    out = tmp_path / layout / "chat.jsonl"
    out.parent.mkdir()
    account = Export(tmp_path / "images", out.parent, layout).run(JsonLines(path), out)
    assert (account.kept, account.rows, account.failed) == (3, 3, {})
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["E/0-0", "E/0-1", "E/1-0"]


def test_second_export_into_the_folder_keeps_the_first_in_its_list(tmp_path: Path) -> None:
    path = write(tmp_path, [two_turns()])
    for name in ("a", "b", "a"):
        Export(tmp_path / "images", tmp_path).run(JsonLines(path), tmp_path / f"{name}.jsonl")
    assert list(json.loads((tmp_path / "dataset_info.json").read_text())) == ["a", "b"]
    (tmp_path / "dataset_info.json").write_text("{not JSON")
    with pytest.raises(DataError, match=r"is written, but not added to .*dataset_info\.json"):
        Export(tmp_path / "images", tmp_path).run(JsonLines(path), tmp_path / "c.jsonl")


def test_replaced_context_begins_a_conversation(tmp_path: Path) -> None:
    rows = export(tmp_path, [two_turns(context="replace")], "llama-factory")
    assert [row["id"] for row in rows] == [0, "0/1"]
    assert [len(row["messages"]) for row in rows] == [3, 2]
    assert [len(row["images"]) for row in rows] == [1, 1]


def test_turn_to_which_nothing_was_shown_has_no_place_in_a_chat() -> None:
    given = two_turns()
    silent = replace(given, turns=(given.turns[0], replace(given.turns[1], messages=())))
    with pytest.raises(DataError, match="needs a message between two turns"):
        list(conversations(silent))


def test_unknown_layout_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'llama-factory'"):
        Export(tmp_path, tmp_path, "llama_factory")  # type: ignore[arg-type]


@pytest.mark.component("trl")
def test_trl_reads_its_layout(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    from trl.data_utils import prepare_multimodal_messages

    export(tmp_path, [two_turns(), two_turns(closing="picture")], "trl")
    data = datasets.Dataset.from_json(
        str(tmp_path / "trl" / "chat.jsonl"), cache_dir=str(tmp_path / "cache")
    )
    assert len(data) == 2
    for row in data:
        images = [PIL.Image.open(tmp_path / "trl" / path) for path in row["images"]]
        filled = prepare_multimodal_messages(row["messages"], images)
        assert [message["role"] for message in filled] == [
            *("system", "user", "assistant", "user", "assistant")
        ]
        found = [
            part["image"].getpixel((0, 0))[0]
            for message in filled
            for part in message["content"]
            if part["type"] == "image"
        ]
        assert found == [10, 200]  # each image is at its original place


@pytest.mark.component("torch", "transformers")
@pytest.mark.timeout(300)
def test_trainer_of_visenv_accepts_the_filtered_episodes(tmp_path: Path) -> None:
    from visenv.registration import load

    played = play(tmp_path, OraclePolicy(expert_rate=0.5), count=6)
    out = tmp_path / "good" / "e.jsonl"
    account = Filter(tmp_path / "images", out.parent).run(JsonLines(played), out)
    assert 0 < account.kept < 6
    tiny_model(tmp_path / "model")
    policy = load("policy", "transformers")(tmp_path / "model")
    for each in read_episodes(out):
        (segment,) = policy.encode(each).segments
        assert len(segment.images) == 2
        assert segment.loss_mask.any()
