"""Tests exports of saved episodes: Inspect logs, checked by a handwritten schema, and parquet."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.visenv.test_episodes import episodes
from visenv.cli import main
from visenv.episodes import write_episodes
from visenv.errors import RunError
from visenv.evaluation.summary import summarize
from visenv.exports.inspect_log import write_inspect_logs
from visenv.exports.parquet import write_parquet
from visenv.exports.portable import portable
from visenv.types import (
    Answered,
    Episode,
    Failure,
    Image,
    Message,
    Segment,
    ToolCalled,
    Turn,
    TurnSpan,
    Video,
)

PICTURE = Image.from_pixels(np.full((2, 3, 3), 40, np.uint8))
FRAMES = tuple(Image.from_pixels(np.full((2, 2, 3), level, np.uint8)) for level in (1, 2))

# The fields that `EvalLog` of inspect_ai 0.3 requires, with the types of the written values.
OPTIONAL_TEXT = (str, type(None))
LOG = {"version": int, "status": str, "eval": dict, "plan": dict, "results": dict, "samples": list}
SPEC = {"created": str, "task": str, "task_id": str, "dataset": dict, "model": str, "config": dict}
SAMPLE = {
    "id": str,
    "epoch": int,
    "input": list,
    "target": list,
    "messages": list,
    "output": dict,
    "scores": dict,
    "metadata": dict,
}
SCORE = {"value": float, "answer": OPTIONAL_TEXT}
CALL = {"id": str, "function": str, "arguments": dict, "type": str}
STOP_REASONS = ("stop", "max_tokens", "unknown")


def check(value: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    for name, kind in schema.items():
        assert isinstance(value[name], kind), name


def check_log(log: Mapping[str, Any]) -> None:
    check(log, LOG)
    check(log["eval"], SPEC)
    assert (log["version"], log["status"]) == (2, "success")
    places = [(sample["id"], sample["epoch"]) for sample in log["samples"]]
    assert len(set(places)) == len(places) == log["results"]["total_samples"]
    for score in log["results"]["scores"]:
        check(score, {"name": str, "scorer": str, "metrics": dict})
        check(score["metrics"]["mean"], {"name": str, "value": float})
    for sample in log["samples"]:
        check_sample(sample)


def check_sample(sample: Mapping[str, Any]) -> None:
    check(sample, SAMPLE)
    for score in sample["scores"].values():
        check(score, SCORE)
    for message in [*sample["input"], *sample["messages"]]:
        assert message["role"] in ("system", "user", "assistant")
        if isinstance(message["content"], str):
            for call in message["tool_calls"]:
                check(call, CALL)
            continue
        for part in message["content"]:
            assert part["type"] in ("text", "image")
            check(part, {part["type"]: str})
    for choice in sample["output"]["choices"]:
        assert choice["stop_reason"] in STOP_REASONS
        assert choice["message"]["role"] == "assistant"
    if "error" in sample:
        check(sample["error"], {"message": str, "traceback": str, "traceback_ansi": str})
    if "limit" in sample:
        check(sample["limit"], {"type": str, "limit": float})


def refuse(constant: str) -> None:
    raise AssertionError(f"the log holds {constant}")


def read_log(path: Path) -> Any:
    text = path.read_bytes().decode("utf-8")  # strict: lone surrogates are an error
    return json.loads(text, parse_constant=refuse)


def played(member: int, reward: float, **fields: Any) -> Episode:
    """Return an episode with a turn that calls a tool and an answer: 3 + 2 sampled tokens."""
    call = ToolCalled(0, "zoom", {"box": [0, 0, 1, 1]}, True)
    opening = (Message("system", ("Be brief.",)), Message("user", ("Look: ", PICTURE)))
    result = Message("user", (Video(FRAMES, (0.0, 0.5)),))
    turns = (
        Turn(opening, "look", 0.0, (call,), "stop", sampling_seconds=1.5, env_seconds=0.5),
        Turn((result,), "seven", reward, (Answered(1, "seven"),), "length", advantage=-0.5),
    )
    mask = np.array([False, True, True, True, False, True, True])
    ids = np.arange(7, dtype=np.int32)
    spans = (TurnSpan(0, 1, 4, "stop"), TurnSpan(1, 5, 7, "length"))
    logprobs = np.where(mask, np.float32(-0.5), np.float32(0))
    segment = Segment(ids, mask, logprobs, 0 * ids, spans, (), (99,), 1.0, "p")
    given = {
        "terms": {"vqa": reward, "judge": None},
        "term_weights": {"vqa": 1.0, "judge": 2.0},
        "term_notes": {"judge": "no answer"},
        "metrics": {"accuracy": reward},
        "answers": ("seven", "7"),
        "segments": (segment,),
        "status": "terminated",
    }
    return Episode("visenv/E-v0", "s1", "sign", 5, 0, member, turns, **{**given, **fields})


def exported(folder: Path, *saved: Episode) -> Any:
    write_episodes(folder / "episodes.jsonl", saved)
    (path,) = write_inspect_logs(folder, folder / "logs")
    return read_log(path)


def test_inspect_log_of_a_group_by_hand(tmp_path: Path) -> None:
    log = exported(tmp_path, played(0, 1.0), played(1, 0.5))
    check_log(log)
    assert (log["eval"]["task"], log["eval"]["config"]) == ("visenv/E-v0", {"epochs": 2})
    means = {each["name"]: each["metrics"]["mean"]["value"] for each in log["results"]["scores"]}
    # (1.0 + 0.5) / 2; the judge's term does not apply and has no score.
    assert means == {"reward": 0.75, "accuracy": 0.75, "term/vqa": 0.75}
    first, second = log["samples"]
    assert (first["id"], first["epoch"], second["epoch"]) == ("s1 (seed 5)", 1, 2)
    assert first["target"] == ["seven", "7"]
    roles = [message["role"] for message in first["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    call = first["messages"][2]["tool_calls"][0]
    assert (call["function"], call["arguments"]) == ("zoom", {"box": [0, 0, 1, 1]})
    assert first["output"]["choices"][0]["stop_reason"] == "max_tokens"
    assert first["output"]["usage"] == {"input_tokens": 2, "output_tokens": 5, "total_tokens": 7}
    assert first["messages"][4]["metadata"]["mean_logprob"] == -0.5
    assert first["total_time"] == 2.0
    assert second["scores"]["reward"]["metadata"]["term_weights"] == {"vqa": 1.0, "judge": 2.0}


def test_inspect_log_holds_the_images_and_frames_themselves(tmp_path: Path) -> None:
    (sample,) = exported(tmp_path, played(0, 1.0))["samples"]
    parts = [part for message in sample["messages"] for part in message["content"]]
    images = [part["image"] for part in parts if isinstance(part, dict) and "image" in part]
    shown = []
    for image in images:
        head, _, encoded = image.partition(",")
        assert head == "data:image/png;base64"
        shown.append(np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(encoded)))))
    expected = [PICTURE.pixels, *(frame.pixels for frame in FRAMES)]
    assert all(np.array_equal(one, other) for one, other in zip(shown, expected, strict=True))
    assert {"type": "text", "text": "[frame at 0.50 s]"} in parts


def test_inspect_log_contains_how_episodes_ended(tmp_path: Path) -> None:
    failure = Failure("service", "judge", "no reply", traceback="trace")
    aborted = played(0, 0.0, status="aborted", failure=failure)
    log = exported(tmp_path, aborted, played(1, 0.0, status="truncated", reason="turns"))
    check_log(log)
    assert log["results"]["completed_samples"] == 1
    first, second = log["samples"]
    assert first["error"]["message"] == "judge: no reply"
    assert second["limit"] == {"type": "custom", "limit": 2.0}
    assert second["metadata"]["reason"] == "turns"


def test_aborted_episode_counts_as_0_in_the_means_of_an_inspect_log(tmp_path: Path) -> None:
    failure = Failure("service", "judge", "no reply")
    aborted = played(0, 0.0, status="aborted", failure=failure, metrics={}, terms={})
    episodes = [aborted, played(1, 1.0), played(2, 0.5)]
    results = exported(tmp_path, *episodes)["results"]
    told = {each["name"]: each["metrics"]["mean"]["value"] for each in results["scores"]}
    row = summarize(episodes).rows[0]
    # (1.0 + 0.5 + 0) / 3, as in an evaluation.
    assert told["reward"] == told["accuracy"] == row.means["accuracy"].value == 0.5
    assert {each["scored_samples"] for each in results["scores"]} == {3}
    assert (results["total_samples"], results["completed_samples"]) == (3, 2)


def test_inspect_log_of_only_aborted_episodes_has_the_reward_0(tmp_path: Path) -> None:
    failure = Failure("service", "judge", "no reply")
    results = exported(tmp_path, played(0, 0.0, status="aborted", failure=failure))["results"]
    assert [(each["name"], each["metrics"]["mean"]["value"]) for each in results["scores"]] == [
        ("reward", 0.0)
    ]


def test_inspect_logs_are_one_for_each_file_and_environment(tmp_path: Path) -> None:
    other = replace(played(0, 1.0), env_id="visenv/Other-v0")
    write_episodes(tmp_path / "rl" / "episodes" / "step_1.jsonl", [played(0, 1.0), other])
    write_episodes(tmp_path / "evaluation" / "after" / "scenes.jsonl", [other])
    logs = [read_log(path) for path in write_inspect_logs(tmp_path, tmp_path / "logs")]
    assert [(log["eval"]["task"], log["eval"]["dataset"]["name"]) for log in logs] == [
        ("visenv/E-v0", "rl/step_1"),
        ("visenv/Other-v0", "rl/step_1"),
        ("visenv/Other-v0", "evaluation/after/scenes"),
    ]
    assert [len(log["samples"]) for log in logs] == [1, 1, 1]


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(saved=st.lists(episodes(), min_size=1, max_size=3))
def test_exports_take_any_episode(
    tmp_path_factory: pytest.TempPathFactory, saved: list[Episode]
) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("run")
    write_episodes(folder / "episodes.jsonl", saved)
    logs = [read_log(path) for path in write_inspect_logs(folder, folder / "logs")]
    for log in logs:
        check_log(log)
    assert sum(len(log["samples"]) for log in logs) == len(saved)
    assert write_parquet(folder, folder / "e.parquet") == len(saved)
    rows = parquet.read_table(folder / "e.parquet").to_pylist()
    assert [row["seed"] for row in rows] == [str(episode.seed) for episode in saved]


@pytest.mark.component("pyarrow")
@pytest.mark.parametrize("seed", [-1, 2**64, 0])
def test_parquet_takes_any_seed(tmp_path: Path, seed: int) -> None:
    from pyarrow import parquet

    write_episodes(tmp_path / "episodes.jsonl", [replace(played(0, 1.0), seed=seed)])
    assert write_parquet(tmp_path, tmp_path / "e.parquet") == 1
    assert parquet.read_table(tmp_path / "e.parquet")["seed"].to_pylist() == [str(seed)]


@pytest.mark.component("pyarrow")
def test_parquet_has_a_row_for_each_episode(tmp_path: Path) -> None:
    from pyarrow import parquet

    saved = [played(member, member / 100) for member in range(70)]  # more than one row group
    write_episodes(tmp_path / "evaluation" / "after" / "scenes.jsonl", saved)
    out = tmp_path / "e.parquet"
    assert write_parquet(tmp_path, out) == 70
    file = parquet.ParquetFile(out)
    assert file.num_row_groups == 2
    rows = file.read().to_pylist()
    assert [row["member"] for row in rows] == list(range(70))
    row = rows[50]
    assert (row["saved_in"], row["line"], row["reward"]) == ("evaluation/after/scenes", 50, 0.5)
    assert dict(row["terms"]) == {"vqa": 0.5, "judge": None}
    assert dict(row["term_weights"]) == {"vqa": 1.0, "judge": 2.0}
    assert row["answer"] == "seven"
    opening, result = (turn["messages"] for turn in row["turns"])
    assert opening[1]["content"].count("<image>") + result[0]["content"].count("<image>") == 3
    assert len(row["images"]) == 3
    assert row["turns"][1]["advantage"] == -0.5
    assert row["segments"][0]["loss_mask"] == [False, True, True, True, False, True, True]


@pytest.mark.component("pyarrow")
def test_parquet_has_as_many_marks_as_images(tmp_path: Path) -> None:
    from pyarrow import parquet

    episode = played(0, 1.0)
    opening = (Message("user", ("Look <image>: ", PICTURE)),)
    turns = (replace(episode.turns[0], messages=opening), *episode.turns[1:])
    write_episodes(tmp_path / "episodes.jsonl", [replace(episode, turns=turns)])
    write_parquet(tmp_path, tmp_path / "e.parquet")
    (row,) = parquet.read_table(tmp_path / "e.parquet").to_pylist()
    contents = [message["content"] for turn in row["turns"] for message in turn["messages"]]
    # First the picture, then the two frames of the video.
    assert [content.count("<image>") for content in contents] == [1, 2]
    assert len(row["images"]) == 3


def test_portable_values_are_strict_json_and_utf8() -> None:
    told = portable({"a": math.nan, "b": ("\ud800x", [math.inf, 1.5]), 3: "\U0001f600"})
    assert told == {"a": None, "b": ("\ufffdx", [None, 1.5]), "3": "\U0001f600"}


@pytest.mark.component("pyarrow")
@pytest.mark.parametrize("broken", [None, b"no image"])
def test_exports_of_a_missing_or_broken_image_keep_its_episode(
    tmp_path: Path, broken: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    from pyarrow import parquet

    write_episodes(tmp_path / "episodes.jsonl", [played(0, 1.0)])
    image = tmp_path / "images" / f"{PICTURE.sha256}.png"
    image.unlink() if broken is None else image.write_bytes(broken)
    (path,) = write_inspect_logs(tmp_path, tmp_path / "logs")
    log = read_log(path)
    check_log(log)
    assert log["samples"][0]["input"][1]["content"] == [
        {"type": "text", "text": "Look: "},
        {"type": "text", "text": "[an image that cannot be read]"},
    ]
    assert write_parquet(tmp_path, tmp_path / "e.parquet") == 1
    (row,) = parquet.read_table(tmp_path / "e.parquet").to_pylist()
    assert [each["bytes"] is None for each in row["images"]] == [True, False, False]
    assert "An image is omitted from the export" in caplog.text


@pytest.mark.parametrize(
    "write",
    [
        write_inspect_logs,
        pytest.param(write_parquet, marks=pytest.mark.component("pyarrow")),
    ],
)
@pytest.mark.parametrize("empty_file", [False, True])
def test_exports_refuse_a_folder_without_episodes(
    tmp_path: Path, write: Any, empty_file: bool
) -> None:
    if empty_file:
        (tmp_path / "episodes.jsonl").touch()
    before = list(tmp_path.iterdir())
    with pytest.raises(RunError, match="holds no episodes"):
        write(tmp_path, tmp_path / "out")
    assert list(tmp_path.iterdir()) == before


@pytest.mark.component("pyarrow")
def test_command_exports_both_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [played(0, 1.0)])
    assert main(["export", str(tmp_path), "--to", "inspect"]) == 0
    (log,) = (tmp_path / "inspect").iterdir()
    assert capsys.readouterr().out == f"{log}\n"
    assert main(["export", str(tmp_path), "--to", "parquet"]) == 0
    assert capsys.readouterr().out == f"1 episodes in {tmp_path / 'episodes.parquet'}\n"
