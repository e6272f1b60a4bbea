"""Tests recording the replies of a scorer in a file, and replaying them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.visenv.scorers.doubles import BATCHES, Echo
from visenv.errors import ConfigurationError, DataError, ServiceError
from visenv.scorers import Scorer, digest


def test_recorded_values_replay_without_the_inner_scorer(
    remote: Any, tag: str, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "replies.jsonl"
    recording = Scorer("recorded", file=str(file), inner=remote().description())
    contents: list[Any] = ["a", "array:600", None, "a"]
    first = [recording.submit(Echo(content)).result() for content in contents]
    assert sum(len(batch) for batch in BATCHES[tag]) == 3
    recording.close()
    replay = Scorer.parse(f"recorded:{file}")
    again = [replay.submit(Echo(content)).result() for content in contents]
    for one, other in zip(first, again, strict=True):
        assert one[1:] == other[1:]
        assert np.array_equal(one.value, other.value)
    assert again[1].value.dtype == np.float32
    assert sum(len(batch) for batch in BATCHES[tag]) == 3
    with pytest.raises(ServiceError, match=rf"holds no reply to the request {digest(Echo('b'))}"):
        replay.submit(Echo("b")).result()


def test_recording_continues_after_a_kill_in_the_middle_of_a_line(
    remote: Any, tag: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "replies.jsonl"
    recording = Scorer("recorded", file=str(file), inner=remote().description())
    recording.submit(Echo("a")).result()
    recording.close()
    with file.open("a") as opened:
        opened.write('{"digest": "half a')
    for content in "ab":
        assert recording.submit(Echo(content)).result().value == content
    assert "half a line" in caplog.text
    assert BATCHES[tag] == [["a"], ["b"]]
    assert [json.loads(line)["value"] for line in file.read_text().splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", '{"digest": "x"}', '{"digest": "x", "model": "m", "value": NaN}', '"x"',
     '{"digest": "x", "model": "m", "value": {"$array": 1}}'],
)  # fmt: skip
def test_line_that_is_no_reply_is_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"digest": "a", "model": "m", "value": 1}\n' + line + "\n")
    with pytest.raises(DataError, match=r"replies.jsonl, line 2 is not a recorded reply"):
        Scorer("recorded", file=str(file)).submit(Echo("a")).result()


def test_file_holds_the_replies_of_one_model(remote: Any, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    lines = [json.dumps({"digest": "a", "model": model, "value": 1}) for model in ("m", "n")]
    file.write_text(lines[0] + "\n")
    recording = Scorer("recorded", file=str(file), inner=remote().description())
    with pytest.raises(ServiceError, match="holds replies of m, not of model of tag"):
        recording.submit(Echo("a")).result()
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"of one model, got \['m', 'n'\]"):
        Scorer("recorded", file=str(file)).submit(Echo("a")).result()


def test_missing_file_is_refused_without_an_inner_scorer(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no file of recorded replies"):
        Scorer("recorded", file=str(tmp_path / "none")).submit(Echo("a")).result()


def test_failure_of_the_inner_scorer_is_not_recorded(remote: Any, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    recording = Scorer("recorded", file=str(file), inner=remote().description())
    with pytest.raises(ServiceError, match="not for you"):
        recording.submit(Echo("refuse")).result()
    assert not file.exists()
